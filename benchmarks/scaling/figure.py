"""The figures: what is missed and, with labels, the exam, against what the trainings differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.newton.exam_rows import CAUSAL
from benchmarks.scaling.axes import AXES, named
from benchmarks.scaling.curves import (
    EXAM,
    FLOPS,
    Point,
    controls,
    counts_heads,
    frontier,
    measured,
    points,
)
from orbits.runs.figure import WIDTH, End, canvas, headline, label_ends, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, LINES, TRUTH, looks
from orbits.runs.result import Result, grouped
from orbits.runs.study import Study


@dataclass(frozen=True)
class Drawing:
    """A figure of one metric.

    Attributes:
        metric: What is drawn.
        file: Name of its file, without an ending.
        title: Its question.
        label: Words beside its axis.
        about: What the caption says of it.
    """

    metric: str
    file: str
    title: str
    label: str
    about: str


DRAWINGS = (
    Drawing(
        EXAM,
        "scaling_exam",
        "Does more {of} bring a head nearer to the law outside its training box?",
        "exam: times the causal ceiling's error (1: the ceiling)",
        "Exam of force heads on the world models: error over the causal ceiling's, geometric mean "
        "over the shifts",
    ),
    Drawing(
        "missed",
        "scaling",
        "Does more {of} bring a world model nearer to the law's kick?",
        "share of the kick that is missed (0: none)",
        "Share of the kick that is missed one step ahead",
    ),
)
OF = {FLOPS: "compute", "heads": "width", "sequences": "data"}
AGAINST = {
    FLOPS: "FLOPs of pre-training",
    "heads": "heads per block",
    "sequences": "different sequences of the training",
}
WITH_HEAD = "FLOPs of pre-training and of the head's training"
CAPTION = (
    "{about}, against {against}. Each point is a training of its own, lines join means over "
    "seeds; grey: what needs no training. {thin}"
)
THIN = "Thin: power law through the best widths, dotted in its colour where there is one width."
NEW = "Level, dotted: new sequences at every step."


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw the curves."""
    found = points(results)
    return [
        _figure(drawing, mine, results, out)
        for drawing in DRAWINGS
        if (mine := measured(found, drawing.metric))
    ]


def _figure(
    drawing: Drawing, found: Sequence[Point], results: Sequence[Result], out: Path
) -> Picture:
    varied = [axis for axis in AXES if len({point.at(axis) for point in found}) > 1]
    line = varied[0] if varied else AXES[0]
    along = FLOPS if line == "steps" else line
    beside = [axis for axis in varied if axis != line]
    grouping = grouped(found, lambda x: (x.variant, *(x.at(axis) for axis in AXES if axis != line)))
    series = {_named(mine[0], beside): mine for mine in grouping.values()}
    style = looks(list(series))
    colours = {name: str(look["color"]) for name, look in style.items()}
    ends: list[End] = []
    with canvas(WIDTH, 4.6) as (figure, axis):
        headline(figure, drawing.title.format(of=OF[along]))
        axis.set(xscale="log", yscale="log")
        for name, mine in series.items():
            ends.append(_curve(axis, name, mine, along, drawing.metric, style[name]))
        if along == FLOPS:
            ends += _compute(axis, found, drawing.metric, colours)
        right = max(point.at(along) for point in found)
        for number, (name, level) in enumerate(_levels(drawing.metric, results).items()):
            axis.axhline(level, color=CONTROL, lw=0.9, ls=LINES[(number + 1) % len(LINES)])
            ends.append(End(name, right, level, CONTROL))
        _ticks(axis, along, found)
        against = AGAINST[along]
        if along == FLOPS and drawing.metric == EXAM and counts_heads(found):
            against = WITH_HEAD
        axis.set_xlabel(against)
        axis.set_ylabel(drawing.label)
        axis.grid(axis="y")
        label_ends(axis, ends)
        fitted = bool(frontier(found, drawing.metric))
        thin = {FLOPS: THIN if fitted else "", "sequences": NEW}.get(along, "")
        caption = CAPTION.format(about=drawing.about, against=against, thin=thin).rstrip()
        return Picture(caption, [save_figure(figure, out / f"{drawing.file}.png")])


def _curve(
    axis: Axes, name: str, mine: Sequence[Point], along: str, metric: str, style: Mapping[str, Any]
) -> End:
    """Draw the trainings of a line and their means, and return its end; new sequences level."""
    colour = str(style["color"])
    placed = [point for point in mine if point.at(along)]
    if new := [point.metrics[metric] for point in mine if not point.at(along)]:
        axis.axhline(fmean(new), color=colour, lw=0.9, ls=":")
    if not placed:
        return End(name, 1.0, fmean(new), colour)
    values = grouped(placed, lambda point: point.at(along))
    means = {x: fmean(p.metrics[metric] for p in values[x]) for x in sorted(values)}
    axis.plot(list(means), list(means.values()), **style)
    dots = [(point.at(along), point.metrics[metric]) for point in placed]
    axis.plot(*np.array(dots).T, ls="none", marker=".", ms=3, color=colour)
    return End(name, max(means), means[max(means)], colour)


def _compute(
    axis: Axes, found: Sequence[Point], metric: str, colours: Mapping[str, str]
) -> list[End]:
    """Draw the power law of each attention in compute; named where it is that of several widths."""
    flops = [point.at(FLOPS) for point in found]
    over, ends = (min(flops), max(flops)), []
    for variant, each in frontier(found, metric).items():
        line = [value.value for x in over if (value := each.at(x)) is not None]
        if not line:
            continue
        if variant in colours:  # its only line
            axis.plot(over, line, color=colours[variant], lw=0.9, ls=":")
        else:
            axis.plot(over, line, color=TRUTH, lw=0.8)
            ends.append(End(f"{variant}, best widths, fitted", over[1], line[1], TRUTH))
    return ends


def _levels(metric: str, results: Sequence[Result]) -> dict[str, float]:
    """Return what needs no training, by name."""
    if metric == EXAM:
        return {CAUSAL: 1.0}
    return {name: result.metrics[metric].value for name, result in controls(results).items()}


def _ticks(axis: Axes, along: str, found: Sequence[Point]) -> None:
    """Mark powers of ten and thrice them, or the places on an axis with few."""
    if along == FLOPS:
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.xaxis.set_minor_formatter(NullFormatter())
        return
    ticks = sorted({point.at(along) for point in found} - {0})
    axis.xaxis.minorticks_off()
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])


def _named(point: Point, beside: Sequence[str]) -> str:
    """Return the name of a line: the attention, and what else is varied."""
    return ", ".join([point.variant, *(named(axis, point.at(axis)) for axis in beside)])
