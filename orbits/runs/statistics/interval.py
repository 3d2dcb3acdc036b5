"""The interval, its meaning in reports, and the interval of a rate."""

from __future__ import annotations

from typing import NamedTuple

CONVENTION = (
    "brackets are 95% intervals. Of three or more trainings (seeds) they are over trainings, by "
    "Student's t; where all share one test set, another set would widen them. Of one training, "
    "and of what nothing trained, they are over what it was tested on, by a bootstrap, and say "
    "nothing about another training. Two trainings, or three of a measure that is near its "
    "bounds, stand one by one in parentheses."
)
"""Meaning of a report's intervals, in the words that every report prints."""


class Interval(NamedTuple):
    """An estimate and the ends of its 95% interval; infinite ends bound nothing."""

    value: float
    low: float
    high: float


def wilson(successes: int, total: int) -> Interval:
    """Return a rate and its Wilson interval (Wilson 1927).

    Raises:
        ValueError: Not ``0 <= successes <= total`` with a positive total.
    """
    if not 0 <= successes <= total or total < 1:
        raise ValueError(f"no rate: {successes} of {total}")
    from scipy.stats import binomtest  # half a second that --help does not need

    ends = binomtest(successes, total).proportion_ci(method="wilson")
    return Interval(successes / total, float(ends.low), float(ends.high))
