"""The figure: laws that continuations obey by world of the prompt, and S by its length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.worlds.names import CEILING
from benchmarks.worlds.scores import TRUTH, Row, prompts, rows, worlds
from orbits.runs.figure import WIDTH, End, canvas, headline, label_ends, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, CONTROL_MARKERS, LINES, looks
from orbits.runs.palette import TRUTH as BLACK
from orbits.runs.result import Result
from orbits.runs.study import Study

CAPTION = (
    "Above: exponent of the distance that continuations obey, by that of the prompt's world, after "
    "the longest prompt; a flat line imposes one law. Below: S by the steps of the prompt. Means "
    "over trainings; without marks: true orbits in bins; grey: controls and the ceiling. Vertical: "
    "laws held out."
)
TITLE = "Do continuations follow the law of their prompt, as true orbits do?"


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw both panels."""
    found = [row for row in rows(results) if any("S" in each for each in row.found.values())]
    if not any(row.is_model for row in found):
        return []
    models = looks([row.variant for row in found if row.is_model])
    others = [row for row in found if not row.is_model and row.variant != TRUTH]
    with canvas(WIDTH, 7.6, nrows=2, height_ratios=[1.5, 1]) as (figure, (above, below)):
        headline(figure, TITLE)
        laws: list[End] = []
        shares: list[End] = []
        for row in found:
            if row.variant == TRUTH:
                style: dict[str, Any] = {"color": BLACK, "ls": "-", "marker": ""}
            elif row.is_model:
                style = models[row.variant]
            else:
                number = others.index(row)
                style = {
                    "color": CONTROL,
                    "ls": "-." if row.variant == CEILING else LINES[1 + number % 2],
                    "marker": CONTROL_MARKERS[number % len(CONTROL_MARKERS)],
                    "lw": 0.9,
                }
            laws += _line(above, row, _laws(row, found), style)
            shares += _line(below, row, _shares(row, found), style)
        for world in worlds(found, "bias"):
            above.axvline(float(world), color=CONTROL, lw=0.7, ls=":")
        above.set(xlabel="exponent of the prompt's world", ylabel="exponent of continuations")
        above.set_xticks([float(world) for world in worlds(found)])
        below.set(xlabel="steps of the prompt", ylim=(-0.5, 1.5))
        below.set_ylabel("S, share of the law followed\n(1: all, 0: none)")
        below.set_xticks(prompts(found))
        below.grid(axis="y")
        label_ends(above, laws)
        label_ends(below, shares)
        return [Picture(CAPTION, [save_figure(figure, out / "worlds.png")])]


def _laws(row: Row, found: Sequence[Row]) -> list[tuple[float, float]]:
    """Return the exponents of continuations by that of the prompt's world."""
    longest = max(prompts(found))
    each = [(float(world), row.value(f"exponent@{world}", longest)) for world in worlds(found)]
    return [(world, value) for world, value in each if value is not None]


def _shares(row: Row, found: Sequence[Row]) -> list[tuple[float, float]]:
    """Return S by the steps of the prompt."""
    each = [(steps, row.value("S", steps)) for steps in prompts(found)]
    return [(steps, value) for steps, value in each if value is not None]


def _line(
    axis: Any, row: Row, points: Sequence[tuple[float, float]], style: dict[str, Any]
) -> list[End]:
    """Draw the points of a row and return where its name stands."""
    if not points:
        return []
    axis.plot(*zip(*points, strict=True), **style)
    return [End(row.name, *points[-1], style["color"])]
