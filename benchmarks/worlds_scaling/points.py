"""Points of a run: trainings with their shares, and gains of S for ten times as much.

A line is fitted to S against the logarithm of one axis, training by training of one seed, and the
seeds' gains are the sample. Points whose continuations obey no law of attraction have no S.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from benchmarks.scaling import axes as scaling
from benchmarks.scaling.curves import is_undercut
from benchmarks.worlds.scores import Row, has_no_law, prompts, rows
from orbits.runs.result import Result, grouped
from orbits.runs.statistics import MINIMUM_SEEDS, Interval, over_seeds

AXES = (*scaling.AXES, "laws")
COMPUTE = "compute"
"""Axis of the line through the best widths: FLOPs of the training."""
COST = "cost"
"""Kind of the cells that tell the FLOPs of a point."""
LEAST = 3
"""Fewest values of an axis through which a line is fitted."""
Place = tuple[scaling.Place, ...]
"""A value for each of :data:`AXES`."""


@dataclass(frozen=True)
class Point:
    """The trainings of one variant at one place.

    Attributes:
        variant: The attention.
        place: Its place on each of :data:`AXES`; 0 sequences are new ones at every step.
        row: Its answers.
        seeds: Seed of each training, in the order of the row's metrics.
        has_law: Whether its continuations obey a power law of an attraction.
        flops: FLOPs of one of its trainings; None where they were not counted.
    """

    variant: str
    place: Place
    row: Row
    seeds: tuple[int, ...]
    has_law: bool
    flops: float | None

    def at(self, axis: str) -> scaling.Place:
        """Return its place on an axis, or its FLOPs; 0 where they were not counted."""
        return self.flops or 0 if axis == COMPUTE else self.place[AXES.index(axis)]

    def others(self, axis: str) -> Place:
        """Return its place on the other axes."""
        return tuple(x for name, x in zip(AXES, self.place, strict=True) if name != axis)

    def shares(self, prompt: int) -> dict[int, float]:
        """Return S of each seed; nothing without a law."""
        if not self.has_law:
            return {}
        values = (metric.value for metric in self.row.metrics("S", prompt))
        return dict(zip(self.seeds, values, strict=True))

    @property
    def mean(self) -> float:
        """Mean S after the longest prompt, of a point with a law."""
        return fmean(self.shares(max(prompts([self.row]))).values())


@dataclass(frozen=True)
class Gain:
    """Gain of S for ten times as much of an axis.

    Attributes:
        axis: What is multiplied.
        points: The points of the line, by their place on the axis.
        gains: The slope of each seed.
    """

    axis: str
    points: tuple[Point, ...]
    gains: tuple[float, ...]

    @property
    def interval(self) -> Interval | None:
        """The mean over seeds with its interval; None of fewer than three."""
        return over_seeds(self.gains) if len(self.gains) >= MINIMUM_SEEDS else None


def references(results: Sequence[Result]) -> list[Row]:
    """Return the truth, the ceiling, controls and random weights, in worlds of powers."""
    return rows([result for result in results if not _place(result)])


def points(results: Sequence[Result]) -> list[Point]:
    """Return the points of a run, in its order."""
    beside = references(results)
    costs = {
        (x.case.variant, _place(x)): x.metrics["flops"].value
        for x in results
        if x.ok and x.case.kind == COST
    }
    asked = [x for x in results if x.ok and x.case.kind == "worlds" and _place(x)]
    found = []
    for (variant, place), each in grouped(asked, lambda x: (x.case.variant, _place(x))).items():
        (row,) = rows(each)
        seeds = tuple(dict.fromkeys(int(x.case.seed or 0) for x in each))
        longest = max(prompts([row]))
        lawful = not has_no_law(row, [*beside, row], longest)
        found.append(Point(variant, place, row, seeds, lawful, costs.get((variant, place))))
    return found


def gains(found: Sequence[Point], axis: str) -> list[Gain]:
    """Return the gain along an axis of each line with three points or more.

    The line of compute goes through the best widths, where there are several.
    """
    if axis == COMPUTE:
        found = _best_widths(found)
    longest = max((max(prompts([point.row])) for point in found), default=0)
    counted = [point for point in found if point.at(axis) and point.has_law]
    made = []
    held = (lambda x: x.at("laws")) if axis == COMPUTE else (lambda x: x.others(axis))
    for line in grouped(counted, lambda x: (x.variant, held(x))).values():
        line = sorted(line, key=lambda point: point.at(axis))
        if len(line) < LEAST:
            continue
        x = np.log10([point.at(axis) for point in line])
        each = [point.shares(longest) for point in line]
        seeds = [seed for seed in each[0] if all(seed in shares for shares in each)]
        slopes = [float(np.polyfit(x, [shares[seed] for shares in each], 1)[0]) for seed in seeds]
        if slopes:
            made.append(Gain(axis, tuple(line), tuple(slopes)))
    return made


def _best_widths(found: Sequence[Point]) -> list[Point]:
    """Return the trainings on new sequences whose S no other width has, by means, for fewer FLOPs.

    Nothing of a variant of one width, whose compute is its steps.
    """
    kept = []
    counted = [
        point for point in found if point.flops and point.has_law and not point.at("sequences")
    ]
    for line in grouped(counted, lambda x: (x.variant, x.at("laws"))).values():
        if len({point.at("heads") for point in line}) < 2:
            continue
        means = {_size(point): (point.at(COMPUTE), -point.mean) for point in line}
        kept += [point for point in line if not is_undercut(_size(point), means)]
    return kept


def _size(point: Point) -> tuple[scaling.Place, int]:
    """Return the width of a point and its steps."""
    return point.at("heads"), int(point.at("steps"))


def places(found: Iterable[Point], axis: str) -> list[str]:
    """Return places on an axis as text: 2,200 for steps, 3.7e+12 for FLOPs."""
    return [f"{point.at(axis):{'.2g' if axis == COMPUTE else ','}}" for point in found]


def fixed(point: Point, axis: str | None = None) -> str:
    """Return the place of a point on the axes other than one, in words."""
    if axis == COMPUTE:
        held = [scaling.named(name, point.at(name)) for name in ("sequences", "laws")]
        return ", ".join(["the best widths", *held])
    names = [name for name in AXES if name != axis]
    return scaling.fixed(names, map(point.at, names))


def _place(result: Result) -> Place:
    """Return the place of a result; nothing of a reference."""
    setting = result.case.setting
    return tuple(setting[axis] for axis in AXES) if AXES[0] in setting else ()
