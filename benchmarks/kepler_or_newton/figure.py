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
from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, TRUTH, look
from orbits.runs.result import Result
from orbits.runs.study import Study
from worldmodel.probes.implied.references import IN_BINS

CAPTION = (
    "Above: mean R² of read-outs of the force (ln F and its vector) and of the orbit's shape (semi-"
    "axes and the Laplace-Runge-Lenz vector), best layer; grey: random weights. Below: the "
    "exponent of the distance that continuations obey inside the training box and closer to the "
    "star; dotted: the true orbits in bins. Left: by the window of each block; right: by the noise "
    "on the context. Points: means over trainings, bars from the smallest to the largest; what "
    "lies beyond a panel is at its edge."
)
SCORES = {"force": FORCE, "orbit's shape": SHAPE}
PLACES = ("inside", "closer")
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
    with canvas(
        1 + 3.9 * len(lines), 6.4, nrows=2, ncols=len(lines), squeeze=False, sharey="row"
    ) as (figure, axes):
        for column, (knob, line) in enumerate(lines.items()):
            above, below = axes[0][column], axes[1][column]
            twins = {x: other for x, each in line.items() if (other := twin(found, each.point))}
            for number, (name, metrics) in enumerate(SCORES.items()):
                _draw(above, line, {x: e.score(metrics) for x, e in line.items()}, number, name)
                style = {"color": CONTROL, "ls": "--", "marker": "", "label": f"{name}, random"}
                style["ls"] = "--" if number else "-"
                _draw(above, line, {x: e.score(metrics) for x, e in twins.items()}, style=style)
            for number, where in enumerate(PLACES, len(SCORES)):
                values = {
                    x: _cut(each.values("exponent_within", where)) for x, each in line.items()
                }
                _draw(below, line, values, number, f"exponent, {where}")
                if bins and (true := bins.values("exponent_within", where)):
                    below.axhline(fmean(true.values()), color=TRUTH, lw=0.9, ls=":")
            _label(below, line, knob)
            above.set_xticks(range(len(line)), [])
            above.set_ylim(-0.05, 1.03)
            below.set_ylim(LOWEST, HIGHEST)
        axes[0][0].set_ylabel("R² of read-outs")
        axes[1][0].set_ylabel("exponent of the distance")
        legend(figure)
        return [Picture(CAPTION, [save_figure(figure, out / "knobs.png")])]


def _cut(values: BySeed) -> BySeed:
    return {seed: min(max(x, LOWEST), HIGHEST) for seed, x in values.items()}


def _draw(
    axis: Any,
    line: Mapping[object, Carried],
    values: Mapping[object, BySeed],
    number: int = 0,
    label: str = "",
    style: Mapping[str, Any] | None = None,
) -> None:
    """Draw means at the places of a line, with bars over trainings."""
    places = list(line)
    there = [(places.index(x), list(each.values())) for x, each in values.items() if each]
    if not there:
        return
    means = [fmean(each) for _, each in there]
    below = [mean - min(each) for mean, (_, each) in zip(means, there, strict=True)]
    above = [max(each) - mean for mean, (_, each) in zip(means, there, strict=True)]
    how = style or {**look(number), "label": label}
    axis.errorbar([x for x, _ in there], means, yerr=(below, above), elinewidth=1, **how)


def _label(axis: Any, line: Mapping[object, Carried], knob: str) -> None:
    if knob == "window":
        axis.set_xticks(range(len(line)), ["all" if x == ALL else str(x) for x in line])
        axis.set_xlabel("window of each block, rows")
    else:
        axis.set_xticks(range(len(line)), [f"{x:g}" for x in line])
        axis.set_xlabel("noise on the context, AU")
