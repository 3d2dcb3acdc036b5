"""Measures of inductive bias, from outputs on white noise (Vafa et al. 2025, section 2).

Where outputs are binary: R-IB, how well the output at one point predicts that at another point
with the same state, and D-IB, how badly it predicts those with other states. Where they are
continuous: the calibration of distances between outputs against those of an oracle that
extrapolates by the true state. Intervals are 95% bootstraps over datasets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from orbits.runs.statistics import Interval, bootstrap, mean, r_squared

Array = npt.NDArray[np.float64]

BINS = 20


def state_bias(outputs: Sequence[Array], same: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return R-IB and D-IB of outputs that are made binary by their sign.

    With one bit as the prediction of the other, the loss of a pair is 1 where they differ. R-IB is
    the mean of 1 - 2 loss over the pairs with the same state: 1 for a function of the state, 0 for
    chance. D-IB is the mean of 2 loss over all other pairs: 1 where the state decides, 0 for a
    constant. Both are means over pairs, then over datasets.

    Args:
        outputs: On the scale of standardised targets, one array of M points per dataset.
        same: The pairs of points with the same state, [P, 2].

    Returns:
        ``r_ib`` and ``d_ib`` as [value, low, high], and the standard errors over datasets that
        the paper gives.
    """
    rows = []
    for output in outputs:
        bits = output.ravel() > 0
        differ = int(np.sum(bits[same[:, 0]] != bits[same[:, 1]]))
        # All pairs that differ are counted at once: there are millions.
        ones = int(np.sum(bits))
        others = len(bits) * (len(bits) - 1) // 2 - len(same)
        all_differ = ones * (len(bits) - ones)
        rows.append([1 - 2 * differ / len(same), 2 * (all_differ - differ) / others])
    metrics: dict[str, Any] = {}
    for name, values in zip(("r_ib", "d_ib"), np.array(rows).T, strict=True):
        metrics[name] = mean(values, np.ones(len(values)))
        metrics[f"{name}_standard_error"] = float(values.std(ddof=1) / np.sqrt(len(values)))
    return metrics


class Calibration:
    """Distances between outputs against those of one oracle.

    The distances of a pair of points are averaged over datasets. Pairs fall into 20 equal bins
    between the smallest and the largest oracle distance; a calibrated model has the oracle's mean
    in every bin, and the error is the mean absolute difference over the bins (the code's MAE; it
    once took the model's distances from the last dataset alone).
    """

    def __init__(self, oracle: Sequence[Array]) -> None:
        distances = np.mean([_distances(output) for output in oracle], axis=0)
        edges = np.linspace(distances.min(), distances.max(), BINS + 1)
        bins = np.clip(np.digitize(distances, edges) - 1, 0, BINS - 1)
        _, self._bin = np.unique(bins, return_inverse=True)
        self._pairs = np.bincount(self._bin)
        self._oracle_means = self._means(oracle)

    def _means(self, outputs: Sequence[Array]) -> Array:
        """Return the mean distance of every bin that has pairs, [datasets, bins]."""
        return np.array([np.bincount(self._bin, _distances(o)) / self._pairs for o in outputs])

    def of(self, outputs: Sequence[Array]) -> tuple[Interval, dict[str, list[float]]]:
        """Return a model's error [value, low, high] and its curve.

        Returns:
            The mean absolute error, and lists over the bins: ``oracle`` and ``model`` (mean
            distance), ``low`` and ``high`` (95% of the model's over datasets), ``pairs``.
        """
        means = self._means(outputs)
        n, one = len(self._pairs), np.ones(len(means))
        table = np.column_stack([means - self._oracle_means, one])

        def error(sums: Array) -> Array:
            return np.abs(sums[..., :n]).mean(axis=-1) / sums[..., n]

        spans = [mean(column, one) for column in means.T]
        curve = {
            "oracle": self._oracle_means.mean(axis=0).tolist(),
            "model": [span[0] for span in spans],
            "low": [span[1] for span in spans],
            "high": [span[2] for span in spans],
            "pairs": self._pairs.tolist(),
        }
        return bootstrap(table, error), curve


def _distances(output: Array) -> Array:
    return pdist(output.reshape(-1, 1))


def extrapolation(
    outputs: Sequence[Array], targets: Sequence[Array], unlabelled: Sequence[npt.NDArray[np.bool_]]
) -> Interval:
    """Return R2 of the outputs at unlabelled points.

    Args:
        outputs: One array [N, K] per dataset.
        targets: True outputs, of mean 0 by construction.
        unlabelled: Points that carried no label.
    """
    table = [
        (np.sum((o - t)[free] ** 2), np.sum(t[free] ** 2))
        for o, t, free in zip(outputs, targets, unlabelled, strict=True)
    ]
    return r_squared(*np.array(table).T)
