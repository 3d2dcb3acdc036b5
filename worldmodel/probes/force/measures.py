"""Measures of force heads: accuracy, and the law they follow; intervals are over sequences.

Everything is a statistic of sums over sequences, so that sequences can be resampled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits.runs import statistics

Array = npt.NDArray[Any]
Columns = dict[str, Array]
"""Columns of :func:`worldmodel.models.predictions.prediction_columns`, one entry per point."""

_ERROR_EDGES = np.logspace(-6, 6, 601)


def measured(runs: Sequence[Columns]) -> dict[str, Any]:
    """Measure trainings of one head at the same points; intervals are over sequences.

    Args:
        runs: Columns of one or more trainings, point for point alike. Their sums are averaged, so
            that a figure is that of a typical training.

    Returns:
        ``r2_log``, R2 of ln F; ``relative_error``, the median of abs(predicted / true - 1);
        ``cosine`` between force vectors; ``exponent_m1``, ``exponent_m2`` and ``exponent_r``, by
        least squares of the logarithm of the prediction on those of the inputs
        (:func:`orbits.runs.statistics.power_law`), where the points determine them. With three or
        more trainings ``r2_log_over_seeds``, whose interval is over these. If there are any
        (a raw target), ``unusable`` is the share of predictions that are not positive: these have
        no logarithm, so that ``r2_log`` and the exponents are of the rest; ``relative_error`` and
        ``cosine`` are of all. Where all are unusable, there is no other metric but ``cosine``.
        Predictions with ``log_m1`` or ``log_m2`` add ``r2_log_m1`` or ``r2_log_m2``.
    """
    _, sequence = np.unique(runs[0]["sequence_id"], return_inverse=True)

    def sums(values: Callable[[Columns], Array]) -> Array:
        return np.mean([_by_sequence(sequence, values(run)) for run in runs], axis=0)

    unusable = float(1 - np.mean([_usable(run) for run in runs]))
    if unusable == 1:
        return {"cosine": statistics.mean(*sums(_cosines).T), "unusable": unusable}
    squares, cosines = sums(_squares), sums(_cosines)
    errors = np.mean([_error_counts(sequence, run) for run in runs], axis=0)
    metrics: dict[str, Any] = {
        "r2_log": statistics.r_squared(*squares.T),
        "relative_error": statistics.bootstrap(errors, _median_error),
        "cosine": statistics.mean(*cosines.T),
        **_exponents(runs),
    }
    if len(runs) >= statistics.MINIMUM_SEEDS:
        each = [1 - np.divide(*_squares(run).sum(axis=0)) for run in runs]
        metrics["r2_log_over_seeds"] = statistics.over_seeds(each)
    for name in ("m1", "m2"):
        if f"log_{name}" in runs[0]:
            metrics[f"r2_log_{name}"] = statistics.r_squared(*sums(partial(_mass_squares, name)).T)
    return {**metrics, "unusable": unusable} if unusable else metrics


def _usable(columns: Columns) -> Array:
    predicted = columns["force_predicted"]
    return np.isfinite(predicted) & (predicted > 0)


def _log_predicted(columns: Columns) -> tuple[Array, Array]:
    """Return the logarithms of the predictions, and 1 where there is one, 0 elsewhere, [n]."""
    usable = _usable(columns)
    predicted = columns["force_predicted"].astype(np.float64)
    return np.log(np.where(usable, predicted, 1)), usable.astype(np.float64)


def _squares(columns: Columns) -> Array:
    """Return squared residuals of ln F and squared distances of ln F from its mean, [n, 2]."""
    predicted, usable = _log_predicted(columns)
    truth = np.log(columns["force"].astype(np.float64))
    middle = np.average(truth, weights=usable) if usable.any() else 0.0
    return usable[:, None] * np.stack([(predicted - truth) ** 2, (truth - middle) ** 2], axis=-1)


def _mass_squares(name: str, columns: Columns) -> Array:
    """Return squared residuals and distances from the mean of a mass's logarithm, [n, 2]."""
    truth = np.log(columns[name].astype(np.float64))
    return np.stack([(columns[f"log_{name}"] - truth) ** 2, (truth - truth.mean()) ** 2], axis=-1)


def _cosines(columns: Columns) -> Array:
    """Return cosines between true and predicted vectors, and 1, [n, 2]."""
    true, predicted = columns["force_vector"], columns["force_vector_predicted"]
    lengths = np.linalg.norm(true, axis=-1) * np.linalg.norm(predicted, axis=-1)
    defined = np.isfinite(lengths) & (lengths > 0)
    cosine = np.sum(true * predicted, axis=-1) / np.where(defined, lengths, 1)
    return np.stack([np.where(defined, cosine, 0), defined], axis=-1).astype(np.float64)


def _error_counts(sequence: Array, columns: Columns) -> Array:
    """Return how many relative errors lie in each cell of a logarithmic grid, [sequences, cells].

    Counts can be summed over resampled sequences, and their median is that of the points.
    """
    error = np.abs(columns["force_predicted"].astype(np.float64) / columns["force"] - 1)
    error = np.clip(np.nan_to_num(error, nan=np.inf), _ERROR_EDGES[0], _ERROR_EDGES[-1])
    cells = len(_ERROR_EDGES) - 1
    cell = np.clip(np.searchsorted(_ERROR_EDGES, error, side="right") - 1, 0, cells - 1)
    table = np.zeros((sequence.max() + 1, cells))
    np.add.at(table, (sequence, cell), 1)
    return table


def _median_error(counts: Array) -> Array:
    """Return the median of counted errors [..., cells], within a cell as if evenly spread."""
    below = np.cumsum(counts, axis=-1)
    half = below[..., -1:] / 2
    cell = np.argmax(below >= half, axis=-1)[..., None]
    inside = np.take_along_axis(counts, cell, axis=-1)
    part = 1 - (np.take_along_axis(below, cell, axis=-1) - half) / inside
    return (_ERROR_EDGES[cell] ** (1 - part) * _ERROR_EDGES[cell + 1] ** part)[..., 0]


def _exponents(runs: Sequence[Columns]) -> dict[str, statistics.Interval]:
    """Return the exponents of all trainings' predictions, as a leaderboard fits them.

    None where the points do not determine them, as those of one or two sequences do not.
    """
    usable = np.concatenate([_usable(run) for run in runs])
    columns = {
        name: np.concatenate([run[name] for run in runs])[usable]
        for name in ("r", "m1", "m2", "force_predicted", "sequence_id")
    }
    inputs = np.column_stack([columns[name] for name in ("r", "m1", "m2")])
    try:
        fitted = statistics.power_law(inputs, columns["force_predicted"], columns["sequence_id"])
    except ValueError:
        return {}
    r, m1, m2 = fitted.exponents
    return {"exponent_m1": m1, "exponent_m2": m2, "exponent_r": r}


def _by_sequence(sequence: Array, values: Array) -> Array:
    """Return the sums of points [n, k] over each sequence, [sequences, k]."""
    return np.stack([np.bincount(sequence, column) for column in values.T], axis=-1)
