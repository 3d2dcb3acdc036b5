from dataclasses import dataclass

import numpy as np
import pytest

G = 39.4784176044


@dataclass(frozen=True)
class Points:
    """Log-uniform points: X [n, 3] in the order r, m1, m2."""

    X: np.ndarray
    seed: int

    def noisy(self, values, share):
        rng = np.random.default_rng(self.seed + 1000)
        return values * (1 + share * rng.normal(size=len(values)))

    @property
    def newton(self):
        r, m1, m2 = self.X.T
        return G * m1 * m2 / r**2


def make_points(seed, n=1000):
    rng = np.random.default_rng(seed)
    ranges = {"r": (0.2, 4), "m1": (0.05, 2), "m2": (0.1, 4)}
    columns = [np.exp(rng.uniform(*np.log(limits), n)) for limits in ranges.values()]
    return Points(np.column_stack(columns), seed)


@pytest.fixture
def sample():
    return make_points(0)


@pytest.fixture
def make():
    return make_points
