"""Curves of a run: the measurements at each point, and power laws through them.

A power law is fitted to the logarithms of each seed's points by least squares, and the seeds'
exponents are the sample, since the points of one seed share its sequences. The coefficient of the
squared logarithm says whether a curve bends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.scaling.axes import AXES, Place
from orbits.runs.result import Result
from orbits.runs.statistics import MINIMUM_SEEDS, Interval, over_seeds

CURVE, PLAN, EXAM, HEAD = "curve", "plan", "exam", "head"
FLOPS, HEAD_FLOPS = "flops", "head_flops"
EXPONENTS = "exponent_within", "exponent_closer"
"""Exponents of continued orbits like those of the training, and of closer ones."""
LEAST = 3
"""Fewest points of a curve through which a power law is fitted."""
FITTED = 100
"""Sequences, the first ones, whose orbits are fitted and whose pieces are looked up."""


@dataclass(frozen=True)
class Point:
    """One training.

    Attributes:
        variant: The attention.
        seed: Seed of the training.
        steps: Steps of pre-training.
        heads: Per block.
        sequences: Different ones; 0 where every step has new ones.
        metrics: Metrics by name.
    """

    variant: str
    seed: int
    steps: int
    heads: Place
    sequences: int
    metrics: Mapping[str, float]

    def at(self, axis: str) -> float:
        """Return its place on one of :data:`AXES`, or its FLOPs."""
        return self.metrics[axis] if axis == FLOPS else getattr(self, axis)


@dataclass(frozen=True)
class Fit:
    """A power law of one quantity in another, over seeds.

    Attributes:
        exponents: One for each seed.
        constants: ln of the value where the other quantity is 1, for each seed.
        bends: The coefficient of the squared logarithm in a parabola, for each seed with four
            points or more.
        first: The least of the other quantity, with the mean of this one there.
        last: The most of the other quantity, with the mean of this one there.
    """

    exponents: tuple[float, ...]
    constants: tuple[float, ...]
    bends: tuple[float, ...]
    first: tuple[float, float]
    last: tuple[float, float]

    @property
    def span(self) -> float:
        """Decades of the other quantity."""
        return math.log10(self.last[0] / self.first[0])

    @property
    def exponent(self) -> Interval | None:
        """The exponent with its interval over seeds; None of fewer than three."""
        return over_seeds(self.exponents) if len(self.exponents) >= MINIMUM_SEEDS else None

    def at(self, x: float) -> Interval | None:
        """Return the value at ``x``, inside the span or beyond, with its interval over seeds."""
        logs = [c + n * math.log(x) for c, n in zip(self.constants, self.exponents, strict=True)]
        if len(logs) < MINIMUM_SEEDS:
            return None
        return Interval(*(math.exp(end) for end in over_seeds(logs)))


def points(results: Sequence[Result]) -> list[Point]:
    """Return the trainings of a run, with the exam of their heads where there is one."""
    exams: dict[Any, float] = {}
    heads = {_place(x): x.metrics[FLOPS].value for x in results if x.ok and x.case.kind == HEAD}
    found: list[Point] = []
    for result in results:
        case = result.case
        score = result.value("exam") if (case.kind, case.arm) == (EXAM, "pretrained") else None
        if score is not None:
            exams[_key(result)] = score
    for result in results:
        if result.ok and result.case.kind == CURVE and result.case.arm == "pretraining":
            metrics = {name: metric.value for name, metric in result.metrics.items()}
            if (score := exams.get(_key(result))) is not None:
                metrics["exam"] = score
                if (flops := heads.get(_place(result))) is not None:
                    metrics[HEAD_FLOPS] = flops
            found.append(Point(*_key(result), metrics))
    return found


def fits(found: Sequence[Point], x: str, y: str) -> dict[tuple[Any, ...], Fit]:
    """Return the power laws of ``y`` in ``x``, by variant and by the variables held fixed."""
    curves: dict[tuple[Any, ...], dict[int, list[tuple[float, float]]]] = {}
    for point in found:
        value, at = point.metrics.get(y), point.at(x)
        if value is not None and value > 0 and at:
            places = tuple(point.at(axis) for axis in AXES if axis != x)
            seeds = curves.setdefault((point.variant, *places), {})
            seeds.setdefault(point.seed, []).append((at, value))
    made = {key: fit(list(seeds.values())) for key, seeds in curves.items()}
    return {key: each for key, each in made.items() if each is not None}


def fit(seeds: Sequence[Sequence[tuple[float, float]]]) -> Fit | None:
    """Return the power law through the points (x, y) of each seed; None of too few points."""
    exponents, constants, bends, lines = [], [], [], []
    for pairs in map(sorted, seeds):
        x, y = np.log(np.array(pairs)).T
        if len(np.unique(x)) < LEAST:
            continue
        slope, level = np.polyfit(x, y, 1)
        exponents.append(float(slope))
        constants.append(float(level))
        if len(np.unique(x)) > LEAST:
            bends.append(float(np.polyfit(x, y, 2)[0]))
        lines.append(pairs)
    if not lines:
        return None
    first = min(pairs[0][0] for pairs in lines), fmean(pairs[0][1] for pairs in lines)
    last = max(pairs[-1][0] for pairs in lines), fmean(pairs[-1][1] for pairs in lines)
    return Fit(tuple(exponents), tuple(constants), tuple(bends), first, last)


def frontier(found: Sequence[Point], y: str) -> dict[str, Fit]:
    """Return the compute-optimal line of each variant: ``y`` in FLOPs of training.

    It goes through the trainings of the best widths; of one width, through all. The exam has none
    in runs that did not count what its heads' training takes.
    """
    if y == EXAM and not counts_heads(found):
        return {}
    with_y = measured(found, y)
    variants = dict.fromkeys(point.variant for point in with_y if point.sequences == 0)
    made = {variant: fit(list(best(with_y, variant, y).values())) for variant in variants}
    return {variant: each for variant, each in made.items() if each is not None}


def measured(found: Sequence[Point], y: str) -> list[Point]:
    """Return the trainings with ``y``; the FLOPs of an exam are those of its head, too."""
    with_y = [point for point in found if y in point.metrics]
    if y != EXAM:
        return with_y
    return [
        replace(
            point,
            metrics={
                **point.metrics,
                FLOPS: point.metrics[FLOPS] + point.metrics.get(HEAD_FLOPS, 0.0),
            },
        )
        for point in with_y
    ]


def counts_heads(found: Sequence[Point]) -> bool:
    """Return whether a run counted the FLOPs of every head that it examined."""
    return all(HEAD_FLOPS in point.metrics for point in found if EXAM in point.metrics)


def several_widths(variant: str, found: Sequence[Point]) -> bool:
    """Return whether a variant was trained at several widths; at one, compute is its steps."""
    return len({point.heads for point in found if point.variant == variant}) > 1


def best(found: Sequence[Point], variant: str, y: str) -> dict[int, list[tuple[float, float]]]:
    """Return the (FLOPs, y) of a variant's trainings of the best widths, by seed.

    A width and number of steps is left out where another width has a lower mean for fewer FLOPs.
    Means over seeds decide for all seeds, so that no seed is chosen for its luck.
    """
    trained: dict[tuple[Place, int], list[Point]] = {}
    for point in found:
        if point.variant == variant and point.sequences == 0 and y in point.metrics:
            trained.setdefault((point.heads, point.steps), []).append(point)
    means = {
        key: (fmean(x.at(FLOPS) for x in each), fmean(x.metrics[y] for x in each))
        for key, each in trained.items()
    }
    kept: dict[int, list[tuple[float, float]]] = {}
    for key, each in trained.items():
        if is_undercut(key, means):
            continue
        for point in each:
            kept.setdefault(point.seed, []).append((point.at(FLOPS), point.metrics[y]))
    return kept


def is_undercut(
    key: tuple[Place, int], means: Mapping[tuple[Place, int], tuple[float, float]]
) -> bool:
    """Return whether another width has a lower mean for no more FLOPs.

    Args:
        key: Width and steps.
        means: FLOPs and mean over seeds, lower the better, by width and steps.
    """
    flops, mean = means[key]
    others = (each for (width, _), each in means.items() if width != key[0])
    return any(cheaper <= flops and lower < mean for cheaper, lower in others)


def plan(results: Iterable[Result], variant: str) -> Result | None:
    """Return the preset that a variant's curve is extrapolated to."""
    asked = (PLAN, variant)
    return next((x for x in results if x.ok and (x.case.kind, x.case.variant) == asked), None)


def controls(results: Iterable[Result]) -> dict[str, Result]:
    """Return the measurements without a training, by name."""
    return {
        result.case.variant: result
        for result in results
        if result.ok and result.case.kind == CURVE and result.case.arm != "pretraining"
    }


def _key(result: Result) -> tuple[str, int, int, Place, int]:
    seed = result.case.seed
    assert seed is not None
    variant, steps, heads, sequences = _place(result)
    return variant, seed, steps, heads, sequences


def _place(result: Result) -> tuple[str, int, Place, int]:
    """Return the variant of a result, and where it lies on each axis."""
    steps, heads, sequences = (result.case.setting[axis] for axis in AXES)
    return result.case.variant, steps, heads, sequences
