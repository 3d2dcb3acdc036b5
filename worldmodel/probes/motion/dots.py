"""Figures of many measures: a row for each model and control, a panel for each measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from orbits.runs import trainings
from orbits.runs.figure import WIDTH, canvas, label_level, save_figure
from orbits.runs.naming import display
from orbits.runs.palette import CONTROL
from orbits.runs.result import Metric, Result, grouped
from orbits.runs.statistics import Interval
from worldmodel.controls.names import FILTER, TABLE
from worldmodel.probes.implied.names import in_words
from worldmodel.probes.looks import Looks, rank, trained_on

FARTHEST = 1.5
"""Widths of the models' values by which a panel shows controls beyond them."""
NEAR = 3.0
"""Factor, or share of the largest value, by which it does so at least."""
NARROW = 0.02
"""Rim of a panel in which nothing differs; on a logarithmic axis the least one, as a share."""
STEPS = (1,), (1, 3), (1, 2, 5), tuple(range(1, 10)), tuple(x / 10 for x in range(10, 100))
"""Steps within a power of ten that a logarithmic axis names: the first that give two places."""
MOST = 4
"""Places that it names at most."""
Value = Callable[[Result], Metric | None]
"""Function that returns the metric of a result, None if the mark is not about that result."""


@dataclass(frozen=True)
class Panel:
    """A panel.

    Attributes:
        title: Words below it.
        marks: Values by the name of their mark: full marks first, then hollow ones.
        level: Name of the control through whose first mark a line is drawn; empty for none.
        log: Whether values are on a logarithmic axis.
    """

    title: str
    marks: Mapping[str, Value]
    level: str = ""
    log: bool = False


@dataclass(frozen=True)
class _Row:
    name: str
    results: Sequence[Result]
    colour: str
    marker: str
    is_model: bool

    def value(self, of: Value) -> Interval | None:
        """Return a value over trainings; that of a control is the same beside each of them."""
        found = [each for each in map(of, self.results) if each is not None]
        return trainings.together(found if self.is_model else found[:1]) if found else None


def draw(results: Sequence[Result], panels: Sequence[Panel], path: Path, across: int = 3) -> Path:
    """Draw a row for each trained model, then for each control.

    Intervals are those of :func:`orbits.runs.trainings.together`, of a control over sequences.

    Args:
        results: Results of models and controls.
        panels: The panels.
        path: File to write.
        across: Panels side by side.
    """
    rows = _rows(results)
    first = sum(row.is_model for row in rows)
    down = -(-len(panels) // across)
    shape: dict[str, Any] = {"nrows": down, "ncols": across, "sharey": True, "squeeze": False}
    with canvas(WIDTH, 0.7 + down * (0.5 + 0.2 * len(rows)), **shape) as (figure, axes):
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, panel in zip(axes.flat, panels, strict=False):
            _panel(axis, panel, rows)
            axis.axhline(first - 0.5, color=CONTROL, lw=0.6)
        axes[0][0].set_yticks(range(len(rows)), [row.name for row in rows])
        axes[0][0].set_ylim(len(rows) - 0.4, -0.6)
        marks = list(dict.fromkeys(name for panel in panels for name in panel.marks))
        if len(marks) > 1:
            found = [
                Line2D([], [], marker="o", ls="", color=CONTROL, label=name, **_filled(at, CONTROL))
                for at, name in enumerate(marks)
            ]
            figure.legend(handles=found, loc="outside upper left", ncols=len(marks))
        return save_figure(figure, path)


def _rows(results: Sequence[Result]) -> list[_Row]:
    looks = Looks(results)
    trained = [x for x in results if rank(x) == 0]
    found = [
        _Row(display(name), mine, looks.colour(mine[0]), looks.style(mine[0])["marker"], True)
        for name, mine in grouped(trained, looks.model).items()
    ]
    several = len({trained_on(x) for x in results}) > 1

    def named(control: Result) -> str:
        learnt = several and control.case.variant in (FILTER, TABLE)
        return looks.model(control) + (f", {in_words(trained_on(control))}" if learnt else "")

    controls = grouped([x for x in results if rank(x) == 2], named)
    return found + [_Row(display(n), mine, CONTROL, "D", False) for n, mine in controls.items()]


def _panel(axis: Axes, panel: Panel, rows: Sequence[_Row]) -> None:
    if panel.log:
        axis.set_xscale("log")
    values = [[row.value(of) for of in panel.marks.values()] for row in rows]
    axis.set_xlim(*_limits(rows, values, panel))
    for place, (row, mine) in enumerate(zip(rows, values, strict=True)):
        for number, value in enumerate(mine):
            if value is not None:
                _mark(axis, place + 0.3 * (number - (len(mine) - 1) / 2), row, number, value)
        if row.results[0].case.variant == panel.level and mine[0] is not None:
            label_level(axis, mine[0].value, "", CONTROL, ls="--")
    axis.set_xlabel(panel.title, fontsize=8)
    axis.grid(axis="x")
    axis.tick_params(axis="y", length=0, pad=6)
    axis.tick_params(axis="x", labelsize=7)
    if panel.log:
        axis.set_xticks(_places(*axis.get_xlim()))
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axis.minorticks_off()
    else:
        axis.locator_params(axis="x", nbins=4)


def _places(low: float, high: float) -> list[float]:
    """Return the places that a logarithmic axis names."""
    found: list[float] = []
    for steps in STEPS:
        places = (step * 10.0**power for power in range(-6, 6) for step in steps)
        found = [x for x in places if low <= x <= high]
        if len(found) > 1:
            break
    return found[:: -(-len(found) // MOST)] if found else []


def _mark(axis: Axes, height: float, row: _Row, number: int, value: Interval) -> None:
    """Draw a mark with its interval; at the edge what lies beyond."""
    if math.isnan(value.value):
        return
    left, right = axis.get_xlim()
    if not left <= value.value <= right:
        edge, mark = (left, "<") if value.value < left else (right, ">")
        axis.plot(edge, height, mark, color=row.colour, ms=4, clip_on=False)
        return
    axis.hlines(height, value.low, value.high, color=row.colour, lw=1.4)
    look = _filled(number, row.colour)
    axis.plot(value.value, height, row.marker, color=row.colour, ms=4.5, zorder=3, **look)


def _filled(number: int, colour: str) -> dict[str, Any]:
    return {"mfc": "white" if number else colour}


def _limits(
    rows: Sequence[_Row], values: Sequence[Sequence[Interval | None]], panel: Panel
) -> tuple[float, float]:
    """Return the ends of a panel: around models and the level, and some way beyond for controls."""
    log = panel.log

    def places(in_front: bool) -> list[float]:
        return [
            math.log(end) if log else end
            for row, mine in zip(rows, values, strict=True)
            if (row.is_model or row.results[0].case.variant == panel.level) == in_front
            for value in mine
            if value is not None
            for end in value
            if math.isfinite(end) and (end > 0 or not log)
        ]

    models, controls = places(True), places(False)
    low, high = min(models or controls or [0.0]), max(models or controls or [0.0])
    reach = max(FARTHEST * (high - low), math.log(NEAR) if log else max(abs(low), abs(high)) / NEAR)
    near = [x for x in controls if low - reach <= x <= high + reach]
    low, high = min([low, *near]), max([high, *near])
    rim = 0.06 * (high - low) or NARROW
    if log:
        rim = max(rim, NARROW)
    low, high = low - rim, high + rim
    return (math.exp(low), math.exp(high)) if log else (low, high)
