"""Intervals: a bootstrap over held-out sequences, and Student's t over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]

MINIMUM_SEEDS = 3
"""Fewer trainings bound nothing: their spread is not an interval."""


def bootstrap(
    sums: npt.ArrayLike,
    statistic: Callable[[Array], Array],
    n_boot: int = 2000,
    seed: int = 0,
) -> list[float]:
    """Return a statistic of sums over sequences, with a 95% percentile interval over sequences.

    A resample draws as many sequences as there are, with replacement. Points of one sequence
    share their masses and their errors, so they are never drawn apart.

    Args:
        sums: What each sequence contributes, [n_sequences, k]: for a mean, the sum of its points
            and their number; for an R2, its residual and its total sum of squares.
        statistic: Maps sums over sequences [..., k] to values [...].
        n_boot: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        Value, lower end, upper end. With fewer than two sequences the ends are infinite.

    Raises:
        ValueError: ``sums`` is not a table, or has no sequence.
    """
    table = np.asarray(sums, np.float64)
    if table.ndim != 2 or not len(table):
        raise ValueError(f"sums must be [n_sequences, k] with a sequence, got {table.shape}")
    value = float(statistic(table.sum(axis=0)))
    if len(table) < 2:
        return [value, -np.inf, np.inf]
    n = len(table)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), n_boot)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = np.nanquantile(statistic(weights @ table), [0.025, 0.975])
    return [value, float(low), float(high)]


def mean(per_sequence_sum: npt.ArrayLike, per_sequence_count: npt.ArrayLike) -> list[float]:
    """Return the mean of points, [value, low, high], from each sequence's sum and count."""
    sums = np.stack([np.asarray(per_sequence_sum), np.asarray(per_sequence_count)], axis=-1)
    return bootstrap(sums, lambda s: s[..., 0] / s[..., 1])


def r_squared(residual: npt.ArrayLike, total: npt.ArrayLike) -> list[float]:
    """Return 1 - SSE / SST, [value, low, high], from each sequence's sums of squares.

    The total is about one fixed reference (the mean of all points, or zero), not about each
    resample's own mean.
    """
    sums = np.stack([np.asarray(residual), np.asarray(total)], axis=-1)
    return bootstrap(sums, lambda s: 1 - s[..., 0] / s[..., 1])


def median(values: npt.ArrayLike, n_boot: int = 1000, seed: int = 0) -> list[float]:
    """Return the median of the points that are not NaN, [value, low, high], over sequences.

    Args:
        values: Points of each sequence, [n_sequences, k].
        n_boot: Number of resamples.
        seed: Seed of the resampling.
    """
    table = np.asarray(values, np.float64)
    middle = float(np.nanmedian(table))
    if len(table) < 2:
        return [middle, -np.inf, np.inf]
    draws = np.random.default_rng(seed).integers(len(table), size=(n_boot, len(table)))
    low, high = np.nanquantile([np.nanmedian(table[rows]) for rows in draws], [0.025, 0.975])
    return [middle, float(low), float(high)]


def over_seeds(values: Sequence[float]) -> list[float]:
    """Return the mean of trainings and its 95% interval by Student's t.

    Raises:
        ValueError: There are fewer than :data:`MINIMUM_SEEDS` values.
    """
    if len(values) < MINIMUM_SEEDS:
        raise ValueError(f"an interval over seeds needs at least {MINIMUM_SEEDS}: {len(values)}")
    middle = float(np.mean(values))
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return [middle, middle - half, middle + half]
