"""Bootstrap intervals over groups: sequences, or data sets, whose points share an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from orbits.runs.statistics.interval import Interval

Array = npt.NDArray[np.float64]

_CHUNK = 250  # resamples drawn at once, so that memory stays small with many groups


def bootstrap(
    sums: npt.ArrayLike,
    statistic: Callable[[Array], Array],
    n_boot: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return a statistic of sums over groups, with a percentile interval over groups.

    Where a few groups make most of a sum the interval is too narrow, since a resample has no more
    of them than the sample: :func:`studentized` is for those. Intervals of medians (:func:`median`)
    hold.

    Args:
        sums: Contribution of each group, [n_groups, k]: for a mean, the sum of its points and
            their number; for an R2, its residual and its total sum of squares.
        statistic: Maps sums over groups [..., k] to values [...].
        n_boot: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        The statistic of all groups. With fewer than two groups the ends are infinite.

    Raises:
        ValueError: ``sums`` is not a table, or has no group.
    """
    table = _table(sums)
    value = float(statistic(table.sum(axis=0)))
    if len(table) < 2:
        return Interval(value, -math.inf, math.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        return percentiles(value, resampled(table, statistic, n_boot, seed))


def studentized(
    sums: npt.ArrayLike,
    statistic: Callable[[Array], Array],
    n_boot: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return a positive statistic of sums, with a bootstrap-t interval of its logarithm.

    For root mean squares and their ratios, of which a few groups make much: a sample that missed
    such groups is low and has a small standard error, which percentiles (:func:`bootstrap`) do not
    see. Each resample is measured in units of its own standard error, by the delta method (Efron &
    Tibshirani 1993, section 12.5).

    It is too narrow still where few groups make all, since a sample may have none of them. Of the
    exam of four force heads, 8,000 sequences in each of eight shifts, of which the worst 1% make 6
    to 49% of the squares, 1,000 were drawn 500 times: the score, a geometric mean over the shifts,
    lies in 93.5 to 95% of these intervals, single shifts in 87 to 95.5% (200 times). Where five
    sequences of 8,000 make 46%, as of one head in its training box, it lies in half of them.

    Args:
        sums: Contribution of each group, [n_groups, k].
        statistic: Maps sums over groups [..., k] to values [...] that depend on each of them
            smoothly.
        n_boot: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        The statistic of all groups. With fewer than two groups the ends are infinite; where it is
        zero, so are both.

    Raises:
        ValueError: ``sums`` is not a table, or has no group.
    """
    table = _table(sums)
    value = float(statistic(table.sum(axis=0)))
    if len(table) < 2:
        return Interval(value, -math.inf, math.inf)
    if not value > 0:
        return Interval(value, value, value)
    logs = []
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for draws in [np.ones((1, len(table))), *_draws(len(table), n_boot, seed)]:
            logs.append(_log_and_error(draws, table, statistic))
        (middle, error), resampled = logs[0][0], np.concatenate(logs[1:])
        if error < 1e-12:  # all groups are alike
            return Interval(value, value, value)
        away = (resampled[:, 0] - middle) / resampled[:, 1]  # infinite where all drawn are alike
        ends = np.nanquantile(away, [0.975, 0.025], method="nearest")
        ends = np.exp(middle - error * ends)
    return Interval(value, *map(float, ends))


def _table(sums: npt.ArrayLike) -> Array:
    """Return contributions of groups, [n_groups, k]; refuse what is no table, or has no group."""
    table = np.asarray(sums, np.float64)
    if table.ndim != 2 or not len(table):
        raise ValueError(f"sums must be [n_groups, k] with a group, got {table.shape}")
    return table


def _log_and_error(draws: Array, table: Array, statistic: Callable[[Array], Array]) -> Array:
    """Return the logarithm of a statistic and its standard error by resample, [resamples, 2].

    Args:
        draws: How often each group is in each resample, [resamples, n_groups].
        table: Contributions of the groups, [n_groups, k].
        statistic: Of sums over groups.
    """
    totals = draws @ table
    slopes = np.zeros_like(totals)
    for column in range(table.shape[1]):
        step = np.zeros_like(totals)
        step[:, column] = 1e-4 * np.abs(totals[:, column])
        rise = np.log(statistic(totals + step) / statistic(totals - step))
        slopes[:, column] = np.divide(
            rise, 2 * step[:, column], out=np.zeros(len(totals)), where=step[:, column] > 0
        )
    influence = slopes @ table.T  # of one more of each group, up to the mean over groups
    centred = influence - np.sum(draws * influence, axis=1, keepdims=True) / len(table)
    error = np.sqrt(np.sum(draws * centred**2, axis=1))
    return np.stack([np.log(statistic(totals)), error], axis=-1)


def mean(group_sums: npt.ArrayLike, group_counts: npt.ArrayLike) -> Interval:
    """Return the mean of points, from the sum and the number of each group's points."""
    sums = np.stack([np.asarray(group_sums), np.asarray(group_counts)], axis=-1)
    return bootstrap(_not_empty(sums), lambda s: s[..., 0] / s[..., 1])


def r_squared(residual: npt.ArrayLike, total: npt.ArrayLike) -> Interval:
    """Return 1 - SSE / SST from the sums of squares of each group.

    The total is about one fixed reference (the mean of all points, or zero), not about each
    resample's own mean.
    """
    sums = np.stack([np.asarray(residual), np.asarray(total)], axis=-1)
    return bootstrap(_not_empty(sums), lambda s: 1 - s[..., 0] / s[..., 1])


def _not_empty(sums: Array) -> Array:
    """Return the groups that contribute something; all, where none does.

    An empty group counts as a draw of nothing, which would narrow the interval of few groups.
    """
    there = (sums != 0).any(axis=-1)
    return sums[there] if there.any() else sums


def median(values: npt.ArrayLike, n_boot: int = 1000, seed: int = 0) -> Interval:
    """Return the median of the points [n_groups, k] that are not NaN, resampled by group."""
    table = np.asarray(values, np.float64)
    there = ~np.isnan(table).all(axis=-1)
    table = table[there] if there.any() else table
    (middle,), drawn = joint_medians([table], n_boot, seed)
    if len(table) < 2:
        return Interval(float(middle), -math.inf, math.inf)
    return percentiles(middle, drawn[:, 0])


def joint_medians(
    tables: Sequence[npt.ArrayLike], n_boot: int = 300, seed: int = 0
) -> tuple[Array, Array]:
    """Return the medians of several tables whose groups are drawn together.

    Args:
        tables: Points of the same groups, [n_groups, k] with any k; NaN are left out.
        n_boot: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        The medians of all groups, [tables], and of each resample, [n_boot, tables].
    """
    each = [np.asarray(table, np.float64) for table in tables]
    n = len(each[0])
    draws = np.random.default_rng(seed).integers(n, size=(n_boot, n))
    middles = np.array([_median(table) for table in each])
    return middles, np.array([[_median(table[rows]) for table in each] for rows in draws])


def _median(values: Array) -> float:
    """Return the median of what is not NaN; NaN, without a warning, where nothing is."""
    return math.nan if np.isnan(values).all() else float(np.nanmedian(values))


def resampled(table: Array, statistic: Callable[[Array], Array], n_boot: int, seed: int) -> Array:
    """Return a statistic of the sums of a table [n_groups, k] over resamples, [n_boot, ...]."""
    each = [statistic(draws @ table) for draws in _draws(len(table), n_boot, seed)]
    return np.concatenate(each)


def _draws(n: int, n_boot: int, seed: int) -> Iterator[Array]:
    """Yield how often each of ``n`` groups is in each resample, [some resamples, n] at a time."""
    rng = np.random.default_rng(seed)
    for start in range(0, n_boot, _CHUNK):
        yield rng.multinomial(n, np.full(n, 1 / n), min(_CHUNK, n_boot - start)).astype(np.float64)


def percentiles(value: float, samples: Array) -> Interval:
    """Return a value with the central 95% of its resamples."""
    known = samples[~np.isnan(samples)]
    if not known.size:
        low = high = math.nan
    elif np.isfinite(known).all():
        low, high = np.quantile(known, [0.025, 0.975])
    else:  # between a finite resample and an infinite one nothing can be interpolated
        low, high = np.quantile(known, [0.025, 0.975], method="nearest")
    return Interval(float(value), float(low), float(high))
