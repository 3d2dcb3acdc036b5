"""Sentences: what more of each axis adds to S, the leak test, and what a table has without it."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.scaling.axes import named
from benchmarks.worlds.names import CEILING, FILTER, HELD_OUT, MEMORIES, UNTRAINED
from benchmarks.worlds.scores import Row, find, prompts, worlds
from benchmarks.worlds.sentences import leak_test, time_step
from benchmarks.worlds_scaling.points import (
    AXES,
    COMPUTE,
    Gain,
    Point,
    fixed,
    gains,
    places,
    points,
    references,
)
from orbits.runs import trainings
from orbits.runs.result import Result
from orbits.runs.study import Study

REFERENCES = (CEILING, *MEMORIES, FILTER, UNTRAINED)


def sentences(study: Study, results: Sequence[Result]) -> list[str]:
    """Return the gains, where there is no law, the leak test and the references."""
    found = points(results)
    said = [_gain(gain) for axis in (COMPUTE, *AXES) for gain in gains(found, axis)]
    said += _new_sequences(found)
    said += time_step(results)
    said += _without_law(found)
    beside = references(results)
    said += _best(found, beside)
    longest = max(prompts(beside), default=0)
    parts = [
        f"{row.name} {row.said('S', longest)}"
        for name in REFERENCES
        if (row := find(beside, name)) is not None and row.metrics("S", longest)
    ]
    if found and parts:
        said.append(
            f"S of what is not trained on the mixture, after {longest} steps: {'; '.join(parts)}."
        )
    return said


def _gain(gain: Gain) -> str:
    first, last = gain.points[0], gain.points[-1]
    longest = max(prompts([first.row]))
    start, end = places((first, last), gain.axis)
    least = f"{start} FLOPs" if gain.axis == COMPUTE else named(gain.axis, first.at(gain.axis))
    return (
        f"{first.variant}, {fixed(first, gain.axis)}: S goes from {first.row.said('S', longest)} "
        f"with {least} to {last.row.said('S', longest)} with {end}; ten times the {gain.axis} "
        f"{_added(gain)}."
    )


def _added(gain: Gain) -> str:
    one = "s" if gain.axis == COMPUTE else ""
    if gain.interval is None:
        return f"add{one} {', '.join(f'{value:z.2f}' for value in gain.gains)}"
    value, low, high = gain.interval
    if high < 0:
        return f"take{one} {-value:.2f} [{-high:.2f}, {-low:.2f}]"
    shown = "" if low > 0 else ", so no gain is shown"
    return f"add{one} {value:z.2f} [{low:z.2f}, {high:z.2f}]{shown}"


def _new_sequences(found: Sequence[Point]) -> list[str]:
    """Say what new sequences at every step have, where a run has others beside them."""
    if all(point.at("sequences") == 0 for point in found):
        return []
    return [
        f"{point.variant} with new sequences at every step ({fixed(point, 'sequences')}): S = "
        f"{point.row.said('S', max(prompts([point.row])))}."
        for point in found
        if point.has_law and not point.at("sequences")
    ]


def _without_law(found: Sequence[Point]) -> list[str]:
    where = [f"{point.variant} ({fixed(point)})" for point in found if not point.has_law]
    if not where:
        return []
    return [
        "Continuations obey no power law of an attraction, so S says nothing there: "
        f"{'; '.join(where)}."
    ]


def _best(found: Sequence[Point], beside: Sequence[Row]) -> list[str]:
    """Say of the point of each variant with most S what memories of orbits would not have.

    They hold laws of the training, so that they are biased at those held out, and time steps of
    the training, so that half of one leaves them less.
    """
    said = []
    for variant in dict.fromkeys(point.variant for point in found):
        mine = [point for point in found if point.variant == variant and point.has_law]
        if not mine:
            continue
        longest = max(prompts([mine[0].row]))
        best = max(mine, key=lambda point: point.row.value("S", longest) or 0.0)
        said.append(
            f"{variant} has most S with {fixed(best)}: {best.row.said('S', longest)}; at half the "
            f"time step, which no training had, {best.row.said('S', longest, half=True)}."
        )
        said += leak_test(best.row, [*beside, best.row], f"{variant} ({fixed(best)})")
        if explained := best.row.read(longest)[1]:
            said.append(
                "Ridge regression reads the exponent from states after the prompt, in the layer "
                f"that tells most, with R² {trainings.words(explained)}."
            )
        names = worlds([best.row], "bias")
        memories = [row for name in MEMORIES if (row := find(beside, name)) is not None]
        if names and memories:
            own, *theirs = (_held_out(row, names, longest) for row in (best.row, *memories))
            each = (f"{row.name} {its}" for row, its in zip(memories, theirs, strict=True))
            said.append(
                "At laws held out of the training it is off the line through the others by, and "
                f"ends off the truth by: {own}; {'; '.join(each)}."
            )
    return said


def _held_out(row: Row, names: Sequence[str], longest: int) -> str:
    """Return the bias at each law held out and the median error there, in words."""
    biases = ", ".join(f"{row.said(f'bias@{x}', longest)} at {x}" for x in names)
    return f"{biases}, {row.said(f'error@{HELD_OUT}', longest)} AU"
