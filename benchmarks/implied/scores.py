"""The scores of a run by world of the training and of the prompts, one value per training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from orbits import laws
from orbits.runs import trainings
from orbits.runs.result import Metric, Result, grouped
from orbits.runs.statistics import MINIMUM_SEEDS, Interval
from orbits.runs.table import Value
from worldmodel.controls.names import IN_BINS, TABLE, TRUE
from worldmodel.probes.implied.followed import followed
from worldmodel.probes.implied.names import SHIFT, in_words

EXPONENT = "exponent_within"
MODEL, TWIN = "pretrained", "untrained"
KEPT = 0.1
"""Largest difference from the exponent of the truth of a law that is kept."""
Place = tuple[str, str | None]
"""Law of the prompts, and their shift out of the training box."""


@dataclass(frozen=True)
class Row:
    """Results of one model, control or truth that continues orbits.

    Attributes:
        variant: Attention, control or truth.
        arm: Model, twin, control or oracle.
        world: Law of the training; None where there was none.
        found: Results by the place of the prompts, one per training.
    """

    variant: str
    arm: str
    world: str | None
    found: Mapping[Place, Sequence[Result]]

    @property
    def who(self) -> str:
        """The name in tables."""
        return f"{self.variant}, untrained" if self.arm == TWIN else self.variant

    @property
    def trained_in(self) -> str:
        """The world of the training in words."""
        return "-" if self.world is None else in_words(self.world)

    @property
    def seeds(self) -> int:
        """Number of trainings."""
        return max((len(each) for each in self.found.values()), default=0)

    def metrics(self, place: Place, metric: str = EXPONENT) -> list[Metric]:
        """Return a metric of the prompts of a place, one per training."""
        each = (result.metrics.get(metric) for result in self.found.get(place, ()))
        return [value for value in each if value is not None]

    def mean(self, place: Place, metric: str = EXPONENT) -> float | None:
        """Return the mean of a metric over trainings; None without one."""
        values = [each.value for each in self.metrics(place, metric)]
        return fmean(values) if values else None

    def interval(self, place: Place, metric: str = EXPONENT) -> Interval | None:
        """Return a metric with its interval over trainings, or over sequences where it is one."""
        found = self.metrics(place, metric)
        return trainings.together(found) if found else None

    def box(self, place: Place, metric: str = EXPONENT, form: str = ".2f") -> Value:
        """Return a metric as a box of a table: over trainings, or over sequences."""
        return trainings.box(self.metrics(place, metric), form)

    def by_seed(self, place: Place, metric: str = EXPONENT) -> dict[int | None, float]:
        """Return a metric of the prompts of a place by the seed of the training."""
        each = {x.case.seed: x.value(metric) for x in self.found.get(place, ())}
        return {seed: value for seed, value in each.items() if value is not None}

    def follows(self, bins: Row | None) -> list[float]:
        """Return the share of the prompts' laws that each training follows."""
        return list(self.shares(bins).values())

    def shares(self, bins: Row | None) -> dict[int | None, float]:
        """Return the same by the seed of the training."""
        if bins is None:
            return {}
        truth = {law: value for (law, shift), value in _means(bins).items() if shift is None}
        by_seed: dict[int | None, dict[str, float]] = {}
        for (law, shift), results in self.found.items():
            for result in results:
                value = result.value(EXPONENT)
                if shift is None and value is not None:
                    by_seed.setdefault(result.case.seed, {})[law] = value
        # A training that lacks a prompt would be compared over other worlds.
        whole = {seed: found for seed, found in by_seed.items() if found.keys() >= truth.keys()}
        shares = {seed: followed(found, truth) for seed, found in whole.items()}
        return {seed: share for seed, share in shares.items() if share is not None}


def rows(results: Iterable[Result]) -> list[Row]:
    """Return who continues orbits: models, their twins, controls, then the truth."""
    made: dict[tuple[str, str, str | None], dict[Place, list[Result]]] = {}
    for result in results:
        case = result.case
        if result.ok and case.kind == "continuations":
            found = made.setdefault((case.variant, case.arm, case.law), {})
            place = case.setting["prompt"], case.setting.get(SHIFT)
            found.setdefault(place, []).append(result)
    order = [MODEL, TWIN, "control", "oracle"]
    keys = sorted(made, key=lambda key: order.index(key[1]))
    return [Row(*key, made[key]) for key in keys]


def one(found: Iterable[Row], variant: str, world: str | None = None) -> Row | None:
    """Return the row of a control or of the truth; None without one."""
    return next((x for x in found if x.variant == variant and x.world == world), None)


def bins(found: Iterable[Row]) -> Row | None:
    """Return the truth in bins."""
    return one(found, IN_BINS)


def places(found: Iterable[Row]) -> list[Place]:
    """Return the places of all prompts, in order of their exponent: first those in the box."""
    every = dict.fromkeys(place for row in found for place in row.found)
    return sorted(every, key=lambda place: (place[1] is not None, place[1] or "", _order(place[0])))


def laws_of(found: Iterable[Row]) -> list[str]:
    """Return the laws of prompts inside the training box."""
    return [law for law, shift in places(found) if shift is None]


def _order(law: str) -> float:
    """Return minus the exponent of a law; laws that are no power come last."""
    exponents = laws.get(law).exponents
    return math.inf if exponents is None else -exponents["r"]


def models(found: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of models, one per world, by their attention."""
    return grouped((row for row in found if row.arm == MODEL), lambda row: row.variant)


def keeps(found: Sequence[Row], row: Row, place: Place) -> bool | None:
    """Return whether continuations have the exponent of the truth; None where that is unknown."""
    value, known = row.mean(place), _truth(found, row, place)
    if value is None or known is None:
        return None
    return abs(value - known) <= KEPT


def is_off(found: Sequence[Row], row: Row, place: Place) -> bool:
    """Return whether a law is not kept and the interval of its exponent leaves the truth out.

    Two trainings have no interval, so that they show nothing.
    """
    around, known = row.interval(place), _truth(found, row, place)
    if around is None or known is None or keeps(found, row, place):
        return False
    if 1 < len(row.metrics(place)) < MINIMUM_SEEDS:
        return False
    _, low, high = around
    return high < known or low > known


def _truth(found: Sequence[Row], row: Row, place: Place) -> float | None:
    """Return the exponent of true orbits, as a row can show it.

    A model writes tokens, so that the exact path of the law has the exponent of the truth in bins
    there. A table pastes exact orbits.
    """
    truth = bins(found) if row.arm in (MODEL, TWIN) else one(found, TRUE)
    return None if truth is None else truth.mean(place)


def table_of(found: Iterable[Row], world: str | None) -> Row | None:
    """Return the table of training orbits of a world."""
    return one(found, TABLE, world)


def _means(row: Row) -> dict[Place, float]:
    return {place: value for place in row.found if (value := row.mean(place)) is not None}
