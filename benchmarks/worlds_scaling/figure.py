"""Figures: S along the first axis that a run varies, and by compute; the ceiling and controls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.scaling.axes import named
from benchmarks.worlds.names import CEILING, FILTER, TABLE
from benchmarks.worlds.scores import Row, find, prompts
from benchmarks.worlds_scaling.points import AXES, COMPUTE, Point, points, references
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
WORDS = {
    "steps": "training",
    "heads": "width",
    "sequences": "data",
    "laws": "variety of laws",
    COMPUTE: "compute",
}


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a figure for the first axis that is varied, and one for compute, where several are."""
    found = [point for point in points(results) if point.has_law]
    varied = [axis for axis in AXES if len({p.at(axis) for p in found if p.at(axis)}) > 1]
    beside = references(results)
    drawn = [(axis, "worlds_scaling", found) for axis in varied[:1]]
    counted = [point for point in found if point.at(COMPUTE)]
    if {"steps", "heads"} <= set(varied) and counted:
        drawn.append((COMPUTE, "worlds_scaling_compute", counted))
    return [_figure(axis, mine, beside, out / f"{file}.png") for axis, file, mine in drawn]


def _figure(along: str, found: Sequence[Point], beside: Sequence[Row], file: Path) -> Picture:
    """Draw S along one axis; along compute lines are those of more steps at one width."""
    longest, held = max(prompts([found[0].row])), "steps" if along == COMPUTE else along
    lines = grouped(
        [point for point in found if point.at(along)],
        lambda point: (point.variant, point.others(held)),
    )
    names = [_named(line[0], held, found) for line in lines.values()]
    style, ends = looks(names), list[End]()
    with canvas(WIDTH, 4.2) as (figure, axis):
        headline(figure, TITLE.format(axis=WORDS[along]))
        for name, line in zip(names, lines.values(), strict=True):
            colour, marker = style[name]["color"], style[name]["marker"]
            at = [point.at(along) for point in line]
            means = [point.mean for point in line]
            axis.plot(at, means, color=colour, marker=marker)
            for point in line:
                shares = list(point.shares(longest).values())
                axis.plot([point.at(along)] * len(shares), shares, ".", ms=3, color=colour)
            halves = [point.row.value("S", longest, half=True) for point in line]
            axis.plot(at, halves, color=colour, ls=":", lw=1)
            ends.append(End(name, at[-1], means[-1], colour))
        most = max(point.at(along) for point in found)
        for number, name in enumerate((CEILING, TABLE, FILTER)):
            row = find(beside, name)
            if row is not None and (level := row.value("S", longest)) is not None:
                axis.axhline(level, color=CONTROL, lw=0.9, ls=LINES[number % len(LINES)])
                ends.append(End(name, most, level, CONTROL))
        axis.set_xscale("log")
        axis.xaxis.minorticks_off()
        if along != COMPUTE:
            ticks = sorted({point.at(along) for point in found if point.at(along)})
            axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        against = f"{'FLOPs' if along == COMPUTE else along} of the training"
        axis.set(xlabel=against, ylim=(-0.3, 1.3))
        axis.set_ylabel("S (1: follows each law, 0: one law)")
        axis.grid(axis="y")
        label_ends(axis, ends)
        return Picture(CAPTION.format(axis=f"the {against}"), [save_figure(figure, file)])


def _named(point: Point, axis: str, found: Sequence[Point]) -> str:
    """Return the name of a line: the attention, and where it lies on what else is varied."""
    varied = [x for x in AXES if x != axis and len({each.at(x) for each in found}) > 1]
    return ", ".join([point.variant, *(named(x, point.at(x)) for x in varied)])
