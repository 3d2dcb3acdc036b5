"""A flat MLP: a plain network on the whole prefix of a sequence, with no notion of rows in order.

It is trained like a force head, by as many steps on as many rows at a time, from the same
labels.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attention.scalars import check_size
from orbits.protocols import Protocol
from worldmodel.controls.force_regression import Array, Batch, ForceRegression
from worldmodel.controls.observed_past import observed_past

WIDTHS = (256, 256)
"""Hidden layers."""


class SteppedMLP(RegressorMixin, BaseEstimator):
    """An MLP trained by a number of Adam steps on random rows.

    Args:
        steps: Number of steps.
        rows: Rows of each.
        lr: Their rate.
        seed: Of weights and draws.
    """

    def __init__(self, steps: int, rows: int, lr: float, seed: int) -> None:
        self.steps, self.rows, self.lr, self.seed = steps, rows, lr, seed

    def fit(self, X: Array, y: Array) -> Self:
        """Train on rows [n, k] and their targets [n, m]."""
        self.network_ = MLPRegressor(
            hidden_layer_sizes=WIDTHS,
            alpha=0.0,
            batch_size=self.rows,
            learning_rate_init=self.lr,
            random_state=self.seed,
        )
        rng = np.random.default_rng(self.seed)
        X, y = X.astype(np.float32), y.astype(np.float32)  # twice as fast
        for _ in range(self.steps):
            drawn = rng.integers(len(X), size=self.rows)
            self.network_.partial_fit(X[drawn], y[drawn])  # one batch, hence one step
        return self

    def predict(self, X: Array) -> Array:
        """Return the targets of rows [n, k], [n, m]."""
        return self.network_.predict(X.astype(np.float32)).astype(np.float64)


def flat_mlp(
    protocol: Protocol, steps: int = 1700, rows: int = 768, lr: float = 3e-3, seed: int = 0
) -> ForceRegression:
    """Return an MLP of ln F and direction on the flattened prefix, standardised.

    Its inputs are the bin centres of all places seen so far, 0 for those to come; which row is
    asked; and the logarithm of the time step.

    Args:
        protocol: Protocol of the observation.
        steps: Steps of Adam.
        rows: Labelled rows of a step, such as those of 64 sequences with 12 asked rows.
        lr: Learning rate.
        seed: Seed of weights and draws.

    Raises:
        ValueError: ``steps`` or ``rows`` is below 1.
    """
    check_size("steps", steps)
    check_size("rows", rows)
    layout = protocol.tokens

    def features(batch: Batch) -> Array:
        past = observed_past(batch, layout)
        places = np.stack([past.planet, past.star], axis=2).reshape(len(past.dt), -1)
        asked = np.arange(past.planet.shape[1]) == past.step[:, None]
        return np.column_stack([np.nan_to_num(places), asked, np.log(past.dt)])

    network = make_pipeline(StandardScaler(), SteppedMLP(steps, rows, lr, seed))
    standardised = TransformedTargetRegressor(network, transformer=StandardScaler())
    return ForceRegression(features, standardised, n_images=8)
