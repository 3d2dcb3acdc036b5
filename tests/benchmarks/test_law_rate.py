"""Controls at full size: the law must be found where it is there to be found (minutes)."""

import numpy as np
import pytest

import symreg
from orbits import protocols
from orbits.best_observer import best_observer

pytestmark = pytest.mark.slow
G = 39.4784176044
SEEDS = range(10)


def held_out(n=1000):
    """Return (r, m1, m2) and two answers at the read rows of ``identifiable``."""
    protocol, indices = protocols.get("identifiable"), np.arange(n)
    batch = protocol.batch(0, "test", indices, "force")
    rows = np.arange(25, 49, 2)
    state = batch["state"][:, rows].reshape(-1, 6)
    X = np.stack([np.hypot(state[:, 0], state[:, 1]), state[:, 4], state[:, 5]], axis=1)
    ceiling = best_observer(protocol, 0, "test", indices).force[:, rows].ravel()
    return X, {"true force": G * X[:, 1] * X[:, 2] / X[:, 0] ** 2, "ceiling": ceiling}


@pytest.mark.parametrize("answer", ["true force", "ceiling"])
def test_operon_finds_newton_in_nine_of_ten_searches(answer):
    X, answers = held_out()
    y, found = answers[answer], 0
    for seed in SEEDS:
        chosen = np.random.default_rng(seed).choice(len(y), size=1000, replace=False)
        front = symreg.fit(X[chosen], y[chosen], engine="operon", seed=seed)
        result = symreg.score(front.best().expression, "newton", X=X, y=y)
        exact = result.constant is not None and abs(result.constant / G - 1) < 1e-3
        found += result.verdict == "law" and exact
        print(answer, seed, front.best().expression, result.verdict, result.constant)
    assert found >= 9
