"""Intervals over trainings, which are few and share one test set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
