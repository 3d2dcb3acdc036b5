"""One metric of trainings that differ in their seed alone: with its interval, or each of few."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from orbits.runs.result import Metric
from orbits.runs.statistics import MINIMUM_SEEDS, Interval, over_seeds
from orbits.runs.table import NOTHING, Value, interval, mean_over_seeds


def together(trainings: Sequence[Metric]) -> Interval:
    """Return a metric over trainings; two that differ have no interval, and the ends are theirs.

    What no training changes has one value for all of them, and its own interval.
    """
    values = [each.value for each in trainings]
    if len(set(values)) == 1:
        return Interval(*(trainings[0].interval or (values[0],) * 3))
    if len(values) >= MINIMUM_SEEDS:
        return over_seeds(values)
    return Interval(fmean(values), min(values), max(values))


def box(trainings: Sequence[Metric], form: str = ".2f") -> Value:
    """Return a box of a table: the metric over trainings, or the interval of a single one."""
    if len(trainings) == 1:
        return interval(trainings[0].interval or [trainings[0].value], form)
    return mean_over_seeds([each.value for each in trainings], form) if trainings else NOTHING


def words(trainings: Sequence[Metric], form: str = ".2f") -> str:
    """Return the metric in a sentence with its interval; without one, each training."""
    if len(trainings) >= MINIMUM_SEEDS or (len(trainings) == 1 and trainings[0].interval):
        return interval(together(trainings), form).words
    return ", ".join(format(each.value, f"z{form}") for each in trainings)
