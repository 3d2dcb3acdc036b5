"""The figure: laws that continuations obey by world of the prompt, and S by its length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.worlds.scores import TRUTH, Row, prompts, rows, worlds
from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, CONTROL_MARKERS, LINES, look
from orbits.runs.palette import TRUTH as BLACK
from orbits.runs.result import Result
from orbits.runs.study import Study

CAPTION = (
    "Left: exponent of the distance that continuations obey, by that of the prompt's world, after "
    "the longest prompt; a flat line imposes one law. Right: S by the steps of the prompt. Means "
    "over trainings; black: true orbits in bins; grey: controls and the ceiling. Dotted: laws "
    "held out."
)


def figures(study: Study, results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw both panels."""
    found = [row for row in rows(results) if any("S" in each for each in row.found.values())]
    if not any(row.is_model for row in found):
        return []
    with canvas(9.4, 4.6, ncols=2) as (figure, (left, right)):
        models = [row for row in found if row.is_model]
        others = [row for row in found if not row.is_model and row.variant != TRUTH]
        for row in found:
            if row.variant == TRUTH:
                style: dict[str, Any] = {"color": BLACK, "ls": "-", "marker": ""}
            elif row.is_model:
                style = look(models.index(row))
            else:
                number = others.index(row)
                style = {
                    "color": CONTROL,
                    "ls": LINES[number % len(LINES)],
                    "marker": CONTROL_MARKERS[number % len(CONTROL_MARKERS)],
                    "lw": 0.9,
                }
            _draw(left, right, row, found, style)
        for world in worlds(found, "bias"):
            left.axvline(float(world), color=CONTROL, lw=0.7, ls=":")
        left.set(xlabel="exponent of the prompt's world", ylabel="exponent of continuations")
        right.set(xlabel="steps of the prompt", ylabel="S", ylim=(-0.5, 1.5))
        right.set_xticks(prompts(found))
        legend(figure)
        return [Picture(CAPTION, [save_figure(figure, out / "worlds.png")])]


def _draw(left: Any, right: Any, row: Row, found: Sequence[Row], style: dict[str, Any]) -> None:
    longest = max(prompts(found))
    points = [
        (float(world), value)
        for world in worlds(found)
        if (value := row.value(f"exponent@{world}", longest)) is not None
    ]
    left.plot([x for x, _ in points], [y for _, y in points], label=row.name, **style)
    lengths = [steps for steps in prompts(found) if row.value("S", steps) is not None]
    right.plot(lengths, [row.value("S", steps) for steps in lengths], **style)
