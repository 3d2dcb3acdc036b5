"""A law-free baseline: a regression of ln F, fitted once and asked about any test set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from worldmodel.data.sequences import joined
from worldmodel.models.predictions import prediction_columns, read_rows

Batch = dict[str, Tensor]
Array = npt.NDArray[np.float64]
LARGEST = 80.0
"""Largest |ln F|: e^80 and e^-80 are finite and positive in float32."""


class ForceRegression:
    """Predict forces by a regression of ln F on numbers that are read off each asked row.

    Args:
        features: Maps a batch to the numbers of its n read rows, [n, k], in their order.
        regressor: A regression of scikit-learn, with ``fit`` and ``predict``.
        direction: Maps a batch to the unit vectors of its n forces, [n, 2]; without it they are
            regressed beside ln F.
        n_images: Number of images of a labelled sequence with new numbers: 2 where the
            numbers do not change when the sequence is turned (:func:`labels_as_trained`).
        least_rows: Labelled rows that a fit needs, such as its number of parameters.
    """

    def __init__(
        self,
        features: Callable[[Batch], Array],
        regressor: Any,
        direction: Callable[[Batch], Array] | None = None,
        n_images: int = 2,
        least_rows: int = 1,
    ) -> None:
        self.features, self.regressor, self.direction = features, regressor, direction
        self.n_images, self.least_rows = n_images, least_rows

    def fit(self, labelled: Iterable[Batch]) -> Self:
        """Fit to the rows of batches that carry a force, and return the predictor.

        Raises:
            ValueError: There are fewer labelled rows than the fit needs.
        """
        pairs = [(self.features(batch), self._targets(batch)) for batch in labelled]
        X, y = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        known = np.isfinite(X).all(axis=1)  # a leaked label may come before anything was seen
        if known.sum() < self.least_rows:
            raise ValueError(
                f"this baseline needs at least {self.least_rows} labelled rows, "
                f"got {known.sum()}; label more sequences"
            )
        self.regressor.fit(X[known], y[known])
        return self

    def columns(self, test: Iterable[Batch]) -> dict[str, Tensor]:
        """Return the columns of a prediction file (:func:`prediction_columns`)."""
        return joined(prediction_columns(batch, *self._forces(batch)) for batch in test)

    def _targets(self, batch: Batch) -> Array:
        """Return ln F, [n], or ln F and the direction, [n, 3]."""
        force = batch["force"][read_rows(batch)].double()
        magnitude = force.norm(dim=-1, keepdim=True)
        if self.direction is not None:
            return magnitude[:, 0].log().numpy()
        return torch.cat([magnitude.log(), force / magnitude], dim=-1).numpy()

    def _forces(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return magnitudes [n] and vectors [n, 2]."""
        predicted = torch.from_numpy(self.regressor.predict(self.features(batch)))
        if self.direction is None:
            log_force, direction = predicted[:, 0], normalize(predicted[:, 1:], dim=-1)
        else:
            log_force, direction = predicted, torch.from_numpy(self.direction(batch))
        magnitude = log_force.clamp(-LARGEST, LARGEST).exp()
        return magnitude.float(), (magnitude[:, None] * direction).float()
