"""Sentences: how fast errors fall, whether the curve bends, and the outlook for a larger preset."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import fmean

from benchmarks.scaling.curves import Fit, Point, best, controls, fits, frontier, plan, points
from orbits.runs.at_once import Compared, in_each
from orbits.runs.result import Result
from orbits.runs.statistics import MINIMUM_SEEDS, over_seeds
from orbits.runs.study import Study
from worldmodel.controls.names import FIT

MISSED = "missed"


def sentences(study: Study, results: Sequence[Result]) -> list[str]:
    """Return the gains by steps and compute, and the prediction of a power law through them."""
    found = points(results)
    said: list[str] = []
    for variant, each in frontier(found, MISSED).items():
        said += _compute(variant, each, found, results)
    said += [_steps(key, each, found) for key, each in fits(found, "steps", MISSED).items()]
    said += [_data(key, each, found) for key, each in fits(found, "sequences", MISSED).items()]
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


def _steps(key: tuple[object, ...], each: Fit, found: Sequence[Point]) -> str:
    variant, heads, sequences = key
    mine = [
        point
        for point in found
        if (point.variant, point.heads, point.sequences) == (variant, heads, sequences)
    ]
    first, last = min(point.steps for point in mine), max(point.steps for point in mine)
    ends = [fmean(p.metrics[MISSED] for p in mine if p.steps == steps) for steps in (first, last)]
    return (
        f"{variant}, {_trained(mine[0])}: the share of the kick that is "
        f"missed falls from {ends[0]:.3f} after {first:,} steps to {ends[1]:.3f} after {last:,}, "
        f"as steps^n with n = {_shown(each.exponents)}{_bend(each)}."
    )


def _data(key: tuple[object, ...], each: Fit, found: Sequence[Point]) -> str:
    variant, steps, heads = key
    missed: dict[float, list[float]] = {}
    for point in found:
        if (point.variant, point.steps, point.heads) == key:
            missed.setdefault(_sequences(point), []).append(point.metrics[MISSED])
    new = missed.pop(math.inf, [])
    first, last = min(missed), max(missed)
    instead = f"; with new ones at every step it is {fmean(new):.3f}" if new else ""
    return (
        f"{variant}, {_width(heads)}, {steps:,} steps: the share of the kick "
        f"that is missed falls from {fmean(missed[first]):.3f} with {first:,} different sequences "
        f"to {fmean(missed[last]):.3f} with {last:,}, as sequences^n with n = "
        f"{_shown(each.exponents)}{_bend(each)}{instead}."
    )


def _sequences(point: Point) -> float:
    """Return the number of different sequences of a training; infinite where all are new."""
    return point.sequences or math.inf


def _trained(point: Point) -> str:
    """Return the width of a training and what it saw, in words."""
    data = f" on {point.sequences:,} sequences" if point.sequences else ""
    return f"{_width(point.heads)}{data}"


def _width(heads: object) -> str:
    return f"{heads} head{'s' * (heads != 1)} wide"


def _bend(each: Fit) -> str:
    """Say whether the curve bends, where seeds can tell."""
    if len(each.bends) < MINIMUM_SEEDS:
        return ""
    value, low, high = over_seeds(each.bends)
    if low > 0:
        return f"; it flattens (bend {value:.3f} [{low:.3f}, {high:.3f}])"
    if high < 0:
        return f"; it steepens (bend {value:.3f} [{low:.3f}, {high:.3f}])"
    return f"; no bend is shown ({value:.3f} [{low:.3f}, {high:.3f}])"


def _compute(
    variant: str, each: Fit, found: Sequence[Point], results: Sequence[Result]
) -> list[str]:
    lines = best(found, variant, MISSED).values()
    ends = [fmean(pairs[place][1] for pairs in lines) for place in (0, -1)]
    words = [
        f"More compute, at the best width for each amount, brings the share of the kick that "
        f"{variant} misses from {ends[0]:.3f} to {ends[1]:.3f} over {each.span:.1f} decades, as "
        f"FLOPs^n with n = {_shown(each.exponents)}{_bend(each)}."
    ]
    target = plan(results)
    if target is None or target.case.variant != variant:
        return words
    flops = target.metrics["flops"].value
    most = max(x for pairs in lines for x, _ in pairs)
    if (value := each.at(flops)) is None or flops <= most:
        return words
    line = controls(results).get(FIT)
    floor = "" if line is None else f"; an orbit fit misses {line.metrics[MISSED].value:.3f}"
    return [
        *words,
        f"Extrapolated by {math.log10(flops / most):.1f} decades to the training of preset "
        f"{target.case.arm} ({flops:.2g} FLOPs), this line gives {value.value:.3f} "
        f"[{value.low:.3f}, {value.high:.3f}]{floor}. It is a guess: nothing shows that the line "
        "stays straight, and that preset has longer sequences and finer bins.",
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
            inside, outside = (
                fmean(point.metrics[name] for point in ends[spent])
                for name in ("exponent_within", "exponent_closer")
            )
            parts.append(f"r^{inside:.2f} and r^{outside:.2f} with {_spent(spent, ends)}")
        yield (
            f"{variant} continues orbits like those of its training, and closer ones, by "
            f"{', by '.join(parts)}."
        )


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
