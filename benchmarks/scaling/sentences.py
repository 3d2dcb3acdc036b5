"""Sentences: how fast errors fall, whether the curve bends, and the outlook for a larger preset."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import fmean
from typing import Any

from benchmarks.scaling.axes import AXES, Place, fixed, named
from benchmarks.scaling.curves import (
    EXAM,
    EXPONENTS,
    Fit,
    Point,
    controls,
    fits,
    frontier,
    plan,
    points,
    several_widths,
)
from orbits.implied.within import is_power
from orbits.runs.at_once import Compared, in_each
from orbits.runs.result import Result
from orbits.runs.statistics import MINIMUM_SEEDS, over_seeds
from orbits.runs.study import Study
from worldmodel.controls.names import FIT

MISSED = "missed"
MEASURES = {
    EXAM: "the exam of heads on it, in times the causal ceiling,",
    MISSED: "the share of the kick that is missed",
}
LONGER = "that preset has longer sequences and finer bins"
PLACES = {"steps": "after {}", "heads": "with {}", "sequences": "with {}"}


def sentences(study: Study, results: Sequence[Result]) -> list[str]:
    """Return the gains by each axis and by compute, and what a power law through them predicts.

    Where heads were examined their exam is what was asked, and comes first.
    """
    found = points(results)
    said = [
        _curve(EXAM, axis, key, each, found)
        for axis in AXES
        for key, each in fits(found, axis, EXAM).items()
    ]
    lines = frontier(found, MISSED)
    for measure, of_compute in ((EXAM, frontier(found, EXAM)), (MISSED, lines)):
        for variant, each in of_compute.items():
            if several_widths(variant, found):
                said.append(_compute(measure, variant, each))
    for axis in ("steps", "sequences"):  # that of width is in the line of compute
        for key, each in fits(found, axis, MISSED).items():
            said.append(_curve(MISSED, axis, key, each, found))
    for variant, each in lines.items():
        said += _outlook(variant, each, results)
    return [*said, *_law(found)]


def all_at_once(study: Study, results: Sequence[Result]) -> Compared:
    """Compare the attentions of each width, on the same data, after the most steps."""
    measures: dict[str, dict[str, dict[int | None, float]]] = {}
    found = points(results)
    most = max((point.steps for point in found), default=0)
    for each in found:
        if each.steps == most and MISSED in each.metrics:
            name = f"the share of the kick missed after {most:,} steps, {_trained(each)}"
            row = measures.setdefault(name, {}).setdefault(each.variant, {})
            row[each.seed] = each.metrics[MISSED]
    return in_each(measures)


def _curve(measure: str, axis: str, key: tuple[Any, ...], each: Fit, found: Sequence[Point]) -> str:
    """Say how a measure goes along an axis, and what new sequences have beside few."""
    variant, *places = key
    others = [other for other in AXES if other != axis]
    (least, start), (most, end) = each.first, each.last
    value = each.exponent
    shown = value is not None and (value.low > 0 or value.high < 0)
    verb = "goes" if value is None or not shown else "falls" if value.high < 0 else "rises"
    new = [
        point.metrics[measure]
        for point in found
        if axis == "sequences" and not point.sequences and measure in point.metrics
        if (point.variant, point.steps, point.heads) == key
    ]
    return (
        f"{variant}, {fixed(others, places)}: {MEASURES[measure]} {verb} from {start:.3f} "
        f"{PLACES[axis].format(named(axis, least))} to {end:.3f} "
        f"{PLACES[axis].format(f'{most:,}')}, as {axis}^n with n = {_shown(each.exponents)}"
        f"{', so no trend is shown' if value is not None and not shown else _bend(each)}"
        f"{f'; with new ones at every step it is {fmean(new):.3f}' if new else ''}."
    )


def _sequences(point: Point) -> float:
    """Return the number of different sequences of a training; infinite where all are new."""
    return point.sequences or math.inf


def _trained(point: Point) -> str:
    """Return the width of a training and what it saw, in words."""
    data = f" on {point.sequences:,} sequences" if point.sequences else ""
    return f"{_width(point.heads)}{data}"


def _width(heads: Place) -> str:
    return f"{named('heads', heads)} wide"


def _bend(each: Fit) -> str:
    """Say whether the curve bends, where seeds can tell."""
    if len(each.bends) < MINIMUM_SEEDS:
        return ""
    value, low, high = over_seeds(each.bends)
    if low <= 0 <= high:
        return f"; no bend is shown ({value:.3f} [{low:.3f}, {high:.3f}])"
    flattens = (value > 0) == (fmean(each.exponents) < 0)
    bent = "flattens" if flattens else "steepens"
    return f"; it {bent} (bend {value:.3f} [{low:.3f}, {high:.3f}])"


def _compute(measure: str, variant: str, each: Fit) -> str:
    what = (
        f"the exam of heads on {variant}, whose own training is counted,"
        if measure == EXAM
        else f"the share of the kick that {variant} misses"
    )
    value = each.exponent
    shown = value is None or value.low > 0 or value.high < 0
    return (
        f"More compute, at the best width for each amount, brings {what} from {each.first[1]:.3f} "
        f"to {each.last[1]:.3f} over {each.span:.1f} decades, as FLOPs^n with n = "
        f"{_shown(each.exponents)}{_bend(each) if shown else ', so no trend is shown'}."
    )


def _outlook(variant: str, each: Fit, results: Sequence[Result]) -> list[str]:
    """Say what the line of compute gives for the preset that it is extrapolated to.

    Its interval is that of the seeds alone, of a straight line; whatever speaks against one is
    said.
    """
    target = plan(results, variant)
    if target is None:
        return []
    flops, (most, _) = target.metrics["flops"].value, each.last
    if (value := each.at(flops)) is None or flops <= most:
        return []
    doubts = []
    if len(each.bends) >= MINIMUM_SEEDS and over_seeds(each.bends).low > 0:
        doubts.append("the line flattens already")
    if (fit := controls(results).get(FIT)) is not None:
        floor = fit.metrics[MISSED].value
        less = "even " if value.value < floor else ""
        doubts.append(f"{less}an orbit fit, which is given the law, misses {floor:.3f}")
    return [
        f"{variant}: a straight line of compute, extrapolated by {math.log10(flops / most):.1f} "
        f"decades to the training of preset {target.case.arm} ({flops:.2g} FLOPs), gives "
        f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}] (the interval is that of the seeds "
        f"alone). It is a guess: {'; '.join([*doubts, LONGER])}."
    ]


def _law(found: Sequence[Point]) -> Iterator[str]:
    """Say whether the law of continuations comes nearer with training, inside and outside."""
    for variant in dict.fromkeys(point.variant for point in found):
        ends: dict[tuple[float, float], list[Point]] = {}
        for point in found:
            if point.variant == variant:
                ends.setdefault((point.metrics["flops"], _sequences(point)), []).append(point)
        parts = []
        for spent in dict.fromkeys((min(ends), max(ends))):
            inside, outside = (_power([x.metrics[name] for x in ends[spent]]) for name in EXPONENTS)
            parts.append(f"{inside} and {outside} with {_spent(spent, ends)}")
        yield (
            f"{variant} continues orbits like those of its training, and closer ones, by "
            f"{', by '.join(parts)}."
        )


def _power(exponents: Sequence[float]) -> str:
    """Return the mean power of trainings, or that some follow none."""
    if not all(map(is_power, exponents)):
        return "no power"
    return f"r^{fmean(exponents):.2f}"


def _spent(one: tuple[float, float], ends: Collection[tuple[float, float]]) -> str:
    """Return what distinguishes an end of a curve: its compute, or at the same compute its data."""
    flops, sequences = one
    if len({x for x, _ in ends}) > 1 or len(ends) == 1:
        return f"{flops:.1g} FLOPs"
    return "new sequences at every step" if math.isinf(sequences) else f"{sequences:,} sequences"


def _shown(values: Sequence[float]) -> str:
    if len(values) < MINIMUM_SEEDS:
        return ", ".join(f"{value:.2f}" for value in values)
    value, low, high = over_seeds(values)
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"
