"""The figure: read-outs and exponents of continuations along the context and along the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.kepler_or_newton.points import ALL
from benchmarks.kepler_or_newton.scores import (
    FORCE,
    SHAPE,
    BySeed,
    Carried,
    along,
    carried,
    twin,
)
from orbits.runs.figure import WIDTH, End, canvas, headline, label_ends, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import COLOURS, CONTROL, LINES, MARKERS, TRUTH
from orbits.runs.result import Result
from orbits.runs.study import Study
from worldmodel.controls.names import IN_BINS

CAPTION = (
    "Above: mean R² of read-outs of the force (ln F and its vector) and of the orbit's shape (semi-"
    "axes and the Laplace-Runge-Lenz vector), best layer; grey: random weights. Below: the "
    "exponent of the distance that continuations obey inside the training box and closer to the "
    "star; dotted: the true orbits in bins. Left: by the window of each block; right: by the noise "
    "on the context. Points: means over trainings, bars from the smallest to the largest; what "
    "lies beyond a panel is at its edge."
)
SCORES = {"force": FORCE, "orbit's shape": SHAPE}
PLACES = {"inside": "inside the training box", "closer": "closer to the star"}
TITLE = "Does a short context or noise make a model Newtonian?"
LOWEST, HIGHEST = -3.5, 0.5
"""Exponents at which the panels end."""


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a column of panels for each of the two knobs."""
    found = carried(results)
    lines = {knob: along(found, knob) for knob in ("window", "noise")}
    lines = {knob: line for knob, line in lines.items() if len(line) > 1}
    if not lines:
        return []
    bins = next((each for each in found if each.name == IN_BINS), None)
    shape = {"nrows": 2, "ncols": len(lines), "squeeze": False, "sharey": "row"}
    with canvas(WIDTH, 6.2, **shape) as (figure, axes):
        headline(figure, TITLE)
        for column, (knob, line) in enumerate(lines.items()):
            above, below = axes[0][column], axes[1][column]
            twins = {x: other for x, each in line.items() if (other := twin(found, each.point))}
            scores: list[End | None] = []
            for number, (name, metrics) in enumerate(SCORES.items()):
                style = {"color": COLOURS[number], "marker": MARKERS[number]}
                values = {x: each.score(metrics) for x, each in line.items()}
                scores.append(_draw(above, line, values, name, style))
                grey = {"color": CONTROL, "ls": LINES[1 - number], "marker": MARKERS[number]}
                values = {x: each.score(metrics) for x, each in twins.items()}
                grey["mfc"] = "white"
                scores.append(_draw(above, line, values, f"{name}, random weights", grey))
            powers: list[End | None] = []
            for number, where in enumerate(PLACES, len(SCORES)):
                style = {"color": COLOURS[number], "marker": MARKERS[number]}
                values = {
                    x: _cut(each.values("exponent_within", where)) for x, each in line.items()
                }
                powers.append(_draw(below, line, values, PLACES[where], style))
                if bins and (true := bins.values("exponent_within", where)):
                    level = fmean(true.values())
                    below.axhline(level, color=TRUTH, lw=0.9, ls=":")
                    if where == next(iter(PLACES)):
                        powers.append(End("truth", len(line) - 1, level, TRUTH))
            _label(below, line, knob)
            above.set_xticks(range(len(line)), [])
            above.set_ylim(-0.05, 1.03)
            below.set_ylim(LOWEST, HIGHEST)
            for axis, ends in ((above, scores), (below, powers)):
                axis.grid(axis="y")
                if column == len(lines) - 1:  # the names hold for the row
                    label_ends(axis, [end for end in ends if end])
        axes[0][0].set_ylabel("R² of read-outs")
        axes[1][0].set_ylabel("exponent of r along continuations")
        return [Picture(CAPTION, [save_figure(figure, out / "knobs.png")])]


def _cut(values: BySeed) -> BySeed:
    return {seed: min(max(x, LOWEST), HIGHEST) for seed, x in values.items()}


def _draw(
    axis: Any,
    line: Mapping[object, Carried],
    values: Mapping[object, BySeed],
    name: str,
    style: Mapping[str, Any],
) -> End | None:
    """Draw means at the places of a line, with bars over trainings; return the end of the line."""
    places = list(line)
    there = [(places.index(x), list(each.values())) for x, each in values.items() if each]
    if not there:
        return None
    means = [fmean(each) for _, each in there]
    below = [mean - min(each) for mean, (_, each) in zip(means, there, strict=True)]
    above = [max(each) - mean for mean, (_, each) in zip(means, there, strict=True)]
    axis.errorbar([x for x, _ in there], means, yerr=(below, above), elinewidth=1, **style)
    return End(name, there[-1][0], means[-1], str(style["color"]))


def _label(axis: Any, line: Mapping[object, Carried], knob: str) -> None:
    if knob == "window":
        axis.set_xticks(range(len(line)), ["all" if x == ALL else str(x) for x in line])
        axis.set_xlabel("window of each\nblock, rows")
    else:
        axis.set_xticks(range(len(line)), [f"{x:g}" for x in line])
        axis.set_xlabel("noise on the\ncontext, AU")
