"""The figure: S along each axis that a run varies, beside the ceiling and the controls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.scaling.axes import named
from benchmarks.worlds.names import CEILING, FILTER, TABLE
from benchmarks.worlds.scores import find, prompts
from benchmarks.worlds_scaling.points import AXES, Point, points, references
from orbits.runs.figure import WIDTH, End, canvas, headline, label_ends, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, LINES, looks
from orbits.runs.result import Result, grouped
from orbits.runs.study import Study

CAPTION = (
    "S, the share of a change of the prompt's law that continuations follow, after the longest "
    "prompt, against {axis}; lines join means over trainings, dots are trainings. Solid: the "
    "prompt as it was trained; dotted: half its time step. Grey: what is not trained on the "
    "mixture. Points whose continuations obey no law are left out."
)
TITLE = "Does more {axis} bring a model to follow its prompt's law?"
WORDS = {"steps": "training", "heads": "width", "sequences": "data", "laws": "variety of laws"}


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a figure for the first axis that is varied."""
    found = [point for point in points(results) if point.has_law]
    varied = [axis for axis in AXES if len({p.at(axis) for p in found if p.at(axis)}) > 1]
    if not varied:
        return []
    axis_name, longest = varied[0], max(prompts([found[0].row]))
    lines = grouped(
        [point for point in found if point.at(axis_name)],
        lambda point: (point.variant, point.others(axis_name)),
    )
    names = [_named(line[0], axis_name, found) for line in lines.values()]
    style, ends = looks(names), list[End]()
    with canvas(WIDTH, 4.2) as (figure, axis):
        headline(figure, TITLE.format(axis=WORDS[axis_name]))
        for name, line in zip(names, lines.values(), strict=True):
            colour, marker = style[name]["color"], style[name]["marker"]
            at = [point.at(axis_name) for point in line]
            means = [fmean(point.shares(longest).values()) for point in line]
            axis.plot(at, means, color=colour, marker=marker)
            for point in line:
                shares = list(point.shares(longest).values())
                axis.plot([point.at(axis_name)] * len(shares), shares, ".", ms=3, color=colour)
            halves = [point.row.value("S", longest, half=True) for point in line]
            axis.plot(at, halves, color=colour, ls=":", lw=1)
            ends.append(End(name, at[-1], means[-1], colour))
        most = max(point.at(axis_name) for point in found)
        beside = references(results)
        for number, name in enumerate((CEILING, TABLE, FILTER)):
            row = find(beside, name)
            if row is not None and (level := row.value("S", longest)) is not None:
                axis.axhline(level, color=CONTROL, lw=0.9, ls=LINES[number % len(LINES)])
                ends.append(End(name, most, level, CONTROL))
        axis.set_xscale("log")
        ticks = sorted({point.at(axis_name) for point in found if point.at(axis_name)})
        axis.xaxis.minorticks_off()
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.set(xlabel=f"{axis_name} of the training", ylim=(-0.3, 1.3))
        axis.set_ylabel("S (1: follows each law, 0: one law)")
        axis.grid(axis="y")
        label_ends(axis, ends)
        caption = CAPTION.format(axis=f"the {axis_name} of the training")
        return [Picture(caption, [save_figure(figure, out / "worlds_scaling.png")])]


def _named(point: Point, axis: str, found: Sequence[Point]) -> str:
    """Return the name of a line: the attention, and where it lies on what else is varied."""
    varied = [x for x in AXES if x != axis and len({each.at(x) for each in found}) > 1]
    return ", ".join([point.variant, *(named(x, point.at(x)) for x in varied)])
