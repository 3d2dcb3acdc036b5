"""The figures of the exam: errors in the training box, outside it and in each shift."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from benchmarks.newton.exam_rows import NO_LABELS, Exam, ExamRow
from orbits.runs.figure import WIDTH, canvas, label_level, save_figure
from orbits.runs.naming import arm, display, two_digits
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, TRUTH, looks
from orbits.runs.result import grouped
from orbits.runs.statistics import Interval

CAPTIONS = {
    "exam": "Errors of ln F in units of the orbit fit's (the causal ceiling), in the training box "
    "and as the geometric mean over the shifts, with 95% intervals; 1 is as well as the "
    "observations allow. A row for each model, a mark for each of its arms; controls in grey. "
    "Dashed: the best baseline without attention.",
    "exam_shifts": "The same in each shift. What lies beyond a panel is at its edge.",
}
MOST_ACROSS = 4
"""Panels side by side."""
MOST_DRAWN, DRAWN_CONTROLS = 12, 2
"""Lines of models in the figure, and of controls of each kind."""
LEFT_OUT = " Of {} models the {} that err least outside; all are in the table."
SCRATCH = "scratch"
HALVES = {"pretrained on ": "left", "trained on ": "bottom"}
"""Filled half of the marks of arms that were trained under another law."""
FARTHEST = 4.0
"""Factor beyond the models' errors up to which a panel shows those of controls."""


@dataclass(frozen=True)
class Line:
    """A line of the figure.

    Attributes:
        name: Name in the figure.
        rows: Rows of the line: arms of one model and label budget, or a control.
        style: Look of its marks, as arguments of matplotlib.
    """

    name: str
    rows: Sequence[ExamRow]
    style: Mapping[str, Any]

    @property
    def is_control(self) -> bool:
        """Whether the line is that of a control."""
        return self.rows[0].is_control


def pictures(exam: Exam, figures: Path) -> list[Picture]:
    """Draw the figures and return them with their captions; none without a model."""
    lines = _lines(exam)
    if not lines or lines[0].is_control:
        return []
    summary: dict[str, Callable[[ExamRow], Interval | None]] = {
        "in the training box": lambda row: row.box,
        f"outside it\n(mean of {len(exam.shifts)} shifts)": lambda row: row.score,
    }
    single = {name.replace("_", "\n"): _of(name) for name in exam.shifts}
    reference = exam.plain[0] if exam.plain else None
    return [
        Picture(
            CAPTIONS[name] + _note(exam), [_draw(lines, panels, reference, figures / f"{name}.png")]
        )
        for name, panels in (("exam", summary), ("exam_shifts", single))
    ]


def _note(exam: Exam) -> str:
    """Return what a caption says of models that have no line."""
    trained = [row for row in exam.rows if not row.is_control and row.times]
    models = len({(row.variant, row.labels) for row in trained})
    return LEFT_OUT.format(models, MOST_DRAWN) if models > MOST_DRAWN else ""


def _of(shift: str) -> Callable[[ExamRow], Interval | None]:
    return lambda row: row.times.get(shift)


def _lines(exam: Exam) -> list[Line]:
    """Return the lines: models, best first, then of each kind of control the best."""
    trained = (row for row in exam.rows if not row.is_control and row.times)
    models = grouped(trained, lambda row: (row.variant, row.labels))
    several = len({labels for _, labels in models}) > 1
    style = looks([variant for variant, _ in models])

    def budget(labels: str) -> str:
        return f", {labels} labels" if several and labels != NO_LABELS else ""

    found = [
        Line(display(variant) + budget(labels), arms, style[variant])
        for (variant, labels), arms in list(models.items())[:MOST_DRAWN]
    ]
    untrained = [x for x in exam.rows if x.is_control and x.arm != "control" and x.times]
    grey = {"color": CONTROL, "marker": "D"}
    for row in (*exam.plain[:DRAWN_CONTROLS], *exam.tables[:DRAWN_CONTROLS], *untrained[:1]):
        kind = "" if row.arm == "control" else f", {arm(row.arm)}"
        found.append(Line(f"{display(row.variant)}{kind}{budget(row.labels)}", [row], grey))
    return found


def _draw(
    lines: Sequence[Line],
    panels: Mapping[str, Callable[[ExamRow], Interval | None]],
    reference: ExamRow | None,
    path: Path,
) -> Path:
    few = len(panels) < 3
    across = min(len(panels), MOST_ACROSS)
    down = -(-len(panels) // across)
    height = 0.7 + down * (0.45 + (0.36 if few else 0.3) * len(lines))
    first = next((n for n, line in enumerate(lines) if line.is_control), len(lines))
    shape: dict[str, Any] = {"nrows": down, "ncols": across, "sharey": True, "squeeze": False}
    with canvas(WIDTH, height, **shape) as (figure, axes):
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, (title, value_of) in zip(axes.flat, panels.items(), strict=False):
            axis.set_xscale("log")
            low, high = _limits(lines, value_of)
            axis.set_xlim(low, high)
            for place, line in enumerate(lines):
                _marks(axis, place, line, value_of)
            axis.axhline(first - 0.5, color=CONTROL, lw=0.6)
            axis.grid(axis="x")
            axis.set_xlabel(title, fontsize=9 if few else 8)
            axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
            axis.minorticks_off()
            axis.set_xticks([x for x in _ticks(few) if low <= x <= high])
            label_level(axis, 1.0, "orbit fit" if few else "", lw=1.2, ls="-")
            beside = reference and value_of(reference)
            if reference and beside:
                text = display(reference.variant).replace(" ", "\n") if few else ""
                label_level(axis, beside.value, text, CONTROL, ls="--")
            axis.tick_params(axis="y", length=0, pad=6)  # marks at the edge
        axes[0][0].set_yticks(range(len(lines)), [line.name for line in lines])
        axes[0][0].set_ylim(len(lines) - 0.4, -0.6)
        figure.supxlabel("error of ln F over an orbit fit's error (1: a fit to what was seen)")
        arms = {row.arm: None for line in lines[:first] for row in line.rows}
        marks = [
            Line2D([], [], marker="o", ls="", label=arm(x), **_filled(x, CONTROL)) for x in arms
        ]
        if not few:
            marks.append(Line2D([], [], color=TRUTH, lw=1.2, label="orbit fit"))
        if reference and not few:
            name = f"{display(reference.variant)}, no attention"
            marks.append(Line2D([], [], color=CONTROL, lw=0.9, ls="--", label=name))
        if len(marks) > 1:
            figure.legend(handles=marks, loc="outside upper left", ncols=len(marks))
        return save_figure(figure, path)


def _marks(
    axis: Axes, place: float, line: Line, value_of: Callable[[ExamRow], Interval | None]
) -> None:
    """Draw the marks of a line, one arm above the other; at the edge what lies beyond."""
    left, right = axis.get_xlim()
    for number, row in enumerate(line.rows):
        value = value_of(row)
        if value is None:
            continue
        height = place + 0.3 * (number - (len(line.rows) - 1) / 2)
        colour = line.style["color"]
        if not left <= value.value <= right:
            edge, mark = (left, "<") if value.value < left else (right, ">")
            axis.plot(edge, height, mark, color=colour, ms=5, clip_on=False)
            towards = 1 if mark == "<" else -1
            axis.annotate(
                two_digits(value.value),
                (edge, height),
                xytext=(6 * towards, 0),
                textcoords="offset points",
                ha="left" if towards > 0 else "right",
                va="center",
                fontsize="small",
                color=colour,
                bbox={"color": "white", "pad": 0.5},
            )
            continue
        if value.high < math.inf:
            axis.hlines(height, value.low, value.high, color=colour, lw=1.6)
        mark, look = line.style["marker"], _filled(row.arm, colour)
        axis.plot(value.value, height, mark, ms=5, zorder=3, **look)


def _filled(name: str, colour: str) -> dict[str, Any]:
    """Return the look of an arm's marks: whole, hollow, or half where it has seen another law."""
    half = next((half for start, half in HALVES.items() if name.startswith(start)), "full")
    fill = "white" if name == SCRATCH else colour
    return {"color": colour, "mfc": fill, "markerfacecoloralt": "white", "fillstyle": half}


def _limits(
    lines: Sequence[Line], value_of: Callable[[ExamRow], Interval | None]
) -> tuple[float, float]:
    """Return the ends of a panel: around models and 1, and a little further for controls."""
    models, controls = (
        [end for line in lines if line.is_control == is_control for end in _ends(line, value_of)]
        for is_control in (False, True)
    )
    low, high = min([1.0, *models]), max([1.0, *models])
    near = [x for x in controls if low / FARTHEST < x < high * FARTHEST]
    return min([low, *near]) / 1.25, max([high, *near]) * 1.25


def _ends(line: Line, value_of: Callable[[ExamRow], Interval | None]) -> Iterator[float]:
    """Yield values and ends of intervals; those of two trainings are 0 and infinite."""
    for row in line.rows:
        if (value := value_of(row)) is not None:
            yield from (end for end in value if 0 < end < math.inf)


def _ticks(few: bool) -> list[float]:
    steps = (1, 3) if few else (1,)
    return [step * 10.0**power for power in range(-3, 5) for step in steps]
