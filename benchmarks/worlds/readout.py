"""A read-out of the law: from a layer's states to a posterior over the exponent, and its scores.

A ridge regression gives the mean, and a second one of the logarithm of the squared errors of the
first, as it errs on what it was not fitted to, gives the spread, up to one factor, which has the
best log score there. The posterior is the normal distribution of the two on a grid of exponents,
held-out ones included: a classifier would have no class there. States that tell nothing end in a
flat one. Of several layers that one is read whose mean explains most of the exponent.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from orbits.arithmetic import Array
from orbits.law_posterior import N_GRID, normalised

STRENGTHS = np.logspace(-2, 5, 15)
FOLDS = 5
LEAST = 0.01
"""The least standard deviation, twice the spacing of the grid."""
SCALES = np.logspace(-1, 3, 21)
"""Factors of the variance to choose from; the last makes any posterior flat."""
VERSION = 4
"""Version of the cells that read the law out.

In the first, the scale was by the mean square; in the second and the third, only the last states
were read, in the second of all but the model that is told the law.
"""
CENTRAL = 0.9
"""Share of a posterior whose coverage is measured."""


class ReadOut:
    """Posteriors over the exponent, fitted to states.

    Args:
        states: [N, d].
        exponents: True ones, [N].
        low: Least exponent that is held possible.
        high: Largest.

    Attributes:
        explained: Share of the exponent's variance that the mean explains in sequences that it was
            not fitted to, R².
    """

    def __init__(self, states: Array, exponents: Array, low: float, high: float) -> None:
        self.grid = np.linspace(low, high, N_GRID)
        self.mean = _ridge().fit(states, exponents)
        mean = cross_val_predict(_ridge(), states, exponents, cv=FOLDS)
        spread = np.var(exponents)
        self.explained = float(1 - np.mean((exponents - mean) ** 2) / spread) if spread else 0.0
        wide = np.log(np.maximum((exponents - mean) ** 2, LEAST**2))
        self.log_variance = _ridge().fit(states, wide)
        guessed = cross_val_predict(_ridge(), states, wide, cv=FOLDS)
        # The mean of a logarithm is not the logarithm of a mean, and the ends of the grid cut
        # tails off, so a scale by the mean square would score less than knowing nothing.
        found = (self._normal(mean, scale * np.exp(guessed)) for scale in SCALES)
        each = [scores(self.grid, density, exponents)["log_score"].mean() for density in found]
        self.scale = float(SCALES[np.argmax(each)])

    def density(self, states: Array) -> Array:
        """Return the posterior's density on the grid, [N, G]."""
        spread = self.scale * np.exp(self.log_variance.predict(states))
        return self._normal(self.mean.predict(states), spread)

    def _normal(self, mean: Array, variance: Array) -> Array:
        """Return normal densities on the grid, [N, G]."""
        variance = np.maximum(variance, LEAST**2)[:, None]
        return normalised(self.grid, -((self.grid - mean[:, None]) ** 2) / (2 * variance))


def most_telling(
    layers: Mapping[str, Array], exponents: Array, low: float, high: float
) -> tuple[str, ReadOut, dict[str, float]]:
    """Fit a read-out to each layer; return the one that explains most of the exponent.

    Args:
        layers: States by layer, each [N, d].
        exponents: True ones, [N].
        low: Least exponent that is held possible.
        high: Largest.

    Returns:
        The layer, its read-out, and the share that each layer's explains.
    """
    fitted = {name: ReadOut(states, exponents, low, high) for name, states in layers.items()}
    explained = {name: each.explained for name, each in fitted.items()}
    best = max(explained, key=lambda name: explained[name])
    return best, fitted[best], explained


def scores(grid: Array, density: Array, truth: Array | float) -> dict[str, Array]:
    """Return the scores of posteriors over the exponent, one per sequence.

    Args:
        grid: Exponents, [G].
        density: Of each posterior, [N, G].
        truth: The true exponents, within the grid, [N] or one for all.

    Returns:
        ``log_score``, the logarithm of the density at the truth, nats; ``crps``, the integral of
        the squared difference between the distribution function and that of the truth; and
        ``coverage``, 1 where the truth lies in the central 90%.
    """
    spacing = np.diff(grid)
    steps = (density[:, 1:] + density[:, :-1]) / 2 * spacing
    below = np.concatenate([np.zeros((len(density), 1)), np.cumsum(steps, axis=1)], axis=1)
    true = np.broadcast_to(truth, len(density))
    at, share = (
        np.array([np.interp(x, grid, each) for x, each in zip(true, table, strict=True)])
        for table in (density, below)
    )
    tail = (1 - CENTRAL) / 2
    return {
        "log_score": np.log(np.maximum(at, np.finfo(float).tiny)),
        "crps": np.trapezoid((below - (grid >= true[:, None])) ** 2, grid, axis=1),
        "coverage": ((share >= tail) & (share <= 1 - tail)).astype(float),
    }


def _ridge() -> Pipeline:
    return make_pipeline(StandardScaler(), RidgeCV(STRENGTHS))
