"""Intervals over trainings, which are few and share one test set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from orbits.runs.statistics.bootstrap import Array, bootstrap, resampled
from orbits.runs.statistics.interval import Interval

MINIMUM_SEEDS = 3
"""Trainings that an interval needs; the spread of fewer bounds nothing."""


def over_seeds(values: Sequence[float]) -> Interval:
    """Return the mean of trainings and its interval by Student's t, on their one test set.

    Raises:
        ValueError: There are fewer than :data:`MINIMUM_SEEDS` values.
    """
    if len(values) < MINIMUM_SEEDS:
        raise ValueError(f"an interval over seeds needs at least {MINIMUM_SEEDS}: {len(values)}")
    from scipy.stats import t  # half a second that --help does not need

    middle = float(np.mean(values))
    half = float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return Interval(middle, middle - half, middle + half)


def over_seeds_and_groups(
    sums: npt.ArrayLike,
    statistic: Callable[[Array], Array],
    n_boot: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the mean of a statistic over trainings, with an interval over trainings and groups.

    The percentiles of a hierarchical bootstrap (trainings with replacement, then groups) cover
    74 to 93% with three to five trainings: two levels of resampling cannot show more spread than
    the few trainings have. So trainings enter by Student's t, and the groups, on which all
    trainings are tested, by a bootstrap:
    ``half width ** 2 = t ** 2 * variance over trainings / n + z ** 2 * shared variance``, where the
    shared variance is what the trainings have in common of their errors from resample to resample.

    Args:
        sums: Contribution of each group, [n_trainings, n_groups, k], as of :func:`bootstrap`.
        statistic: Maps sums over groups [..., k] to values [...].
        n_boot: Number of resamples of groups.
        seed: Seed of the resampling.

    Returns:
        Of one training the bootstrap over groups.

    Raises:
        ValueError: ``sums`` has another shape, or there are two trainings.
    """
    table = np.asarray(sums, np.float64)
    if table.ndim != 3:
        raise ValueError(f"sums must be [n_trainings, n_groups, k], got {table.shape}")
    n, n_groups, k = table.shape
    if n == 1:
        return bootstrap(table[0], statistic, n_boot, seed)
    value, _, high = over_seeds(statistic(table.sum(axis=1)).tolist())
    if n_groups < 2:
        return Interval(value, -math.inf, math.inf)
    # The same groups are drawn for all trainings, since all were tested on them.
    together = table.transpose(1, 0, 2).reshape(n_groups, n * k)
    drawn = resampled(together, lambda s: statistic(s.reshape(-1, n, k)), n_boot, seed)
    covariance = np.cov(drawn[np.isfinite(drawn).all(axis=1)], rowvar=False)
    shared = max(float(covariance.sum() - covariance.trace()) / (n * (n - 1)), 0.0)
    half = float(np.hypot(high - value, 1.959964 * shared**0.5))
    return Interval(value, value - half, value + half)
