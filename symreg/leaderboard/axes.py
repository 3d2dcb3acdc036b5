"""Labels, limits and intervals of the panels in a leaderboard's figures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbits.runs.naming import arm, display
from orbits.runs.palette import COLOURS, CONTROL
from orbits.runs.statistics import Interval
from orbits.runs.untrusted import printable
from symreg.leaderboard.row import Row

WIDTH, EDGE = 9, 0.12  # inches, of a figure and left of the name of its vertical axes
CONTESTANT = COLOURS[0]
ARMS = {"scratch": COLOURS[5]}
"""Colours of arms; any other contestant is a :data:`CONTESTANT`."""
LONGEST = 44
"""Longest line of a name, in letters."""


def fixed_margins(figure: Figure) -> None:
    """Give many panels margins of a fixed size: fitting them takes longer than drawing them.

    The figure has the layout ``none``.
    """
    width, height = figure.get_size_inches()
    figure.subplots_adjust(
        left=0.85 / width,
        right=1 - 0.1 / width,
        bottom=0.5 / height,
        top=1 - 0.6 / height,
        wspace=0.2,
        hspace=0.4,
    )


def label(row: Row) -> str:
    """Return a row's name as a reader knows it, cut in its middle, for its end tells it apart."""
    text = _name(row)
    if len(text) > LONGEST:
        start, _, end = text.rpartition(", ")
        room = max(LONGEST - len(end) - 4, LONGEST // 2)
        cut = start.rfind(", ", 0, room + 1)
        text = f"{start[: cut if cut > 0 else room]}, … {end[: LONGEST // 2]}"
    return printable(text, 60)


def in_lines(row: Row) -> str:
    """Return a row's name, whole in one or two lines; what is longer still as :func:`label`."""
    lines = textwrap.wrap(printable(_name(row), 2 * LONGEST), LONGEST)
    return "\n".join(lines) if len(lines) < 3 and "…" not in lines[-1] else label(row)


def row_height(rows: Sequence[Row]) -> float:
    """Return the inches of a row, with room for its name."""
    return 0.34 if any("\n" in in_lines(row) for row in rows) else 0.24


def _name(row: Row) -> str:
    arms = "" if row.arm in ("control", "-") else arm(row.arm)
    labels = "" if row.is_control or row.labels == "-" else f"{row.labels} labels"
    return ", ".join(filter(None, (display(row.model), arms, labels)))


def colour(row: Row) -> str:
    """Return the colour of a row, which tells arms apart."""
    return CONTROL if row.is_control else ARMS.get(row.arm, CONTESTANT)


def by_budget(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with those of one label budget together, the largest first, controls last."""

    def budget(row: Row) -> float:
        number = row.labels.replace(",", "")
        return float(number) if number.isascii() and number.isdigit() else math.inf

    return sorted(rows, key=lambda row: (row.is_control, -budget(row)))


def label_rows(axes: Sequence[Axes], rows: Sequence[Row]) -> None:
    """Name the rows along the shared y axis, the first on top, with a line above the controls."""
    axes[0].set_yticks(range(len(rows)), list(map(in_lines, rows)))
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    groups = [("control" if row.is_control else row.labels) for row in rows]
    for place in range(1, len(rows)):
        if groups[place] != groups[place - 1]:
            strong = "control" in groups[place - 1 : place + 1]
            for axis in axes:
                axis.axhline(place - 0.5, color=CONTROL, lw=0.8 if strong else 0.4)
    axes[0].tick_params(axis="y", length=0)


def legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Put one legend above all panels, in as many columns as names leave room for."""
    letters = 16 * figure.get_figwidth()  # of a line
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    columns = min(len(handles), max(1, int(letters / (longest + 8))))
    kwargs: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 8}
    kwargs["loc"] = "outside upper right" if figure.get_layout_engine() else "upper right"
    figure.legend(handles=handles, **kwargs)


def interval(axis: Axes, place: float, value: Interval, colour: str, told: bool = False) -> None:
    """Draw a value and its interval, or an arrow where the value lies beyond the axis."""
    middle, low, high = value
    left, right = axis.get_xlim()
    axis.hlines(place, low, high, color=colour, lw=2)
    if left <= middle <= right:
        axis.plot(middle, place, "o", color=colour, ms=3.5)
    elif np.isfinite(middle):
        edge, arrow = (left, "<") if middle < left else (right, ">")
        axis.plot(edge, place, arrow, color=colour, ms=4.5, clip_on=False)
        if told:
            inwards = 6 if arrow == "<" else -6
            axis.annotate(
                f"{round(middle, 2) + 0.0:g}",  # of -0.0, too, 0
                (edge, place),
                textcoords="offset points",
                xytext=(inwards, 0),
                ha="left" if arrow == "<" else "right",
                va="center",
                color=colour,
                fontsize=8,
                # Else the line of the law may run through the sign of the number.
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )


def limit(axis: Axes, intervals: Sequence[Interval], targets: Sequence[float]) -> None:
    """Set an axis that shows every value and most of every interval: one must not hide the rest.

    To be called before :func:`interval`, which draws what is left out as an arrow.
    """
    values = _finite([*(value for value, _, _ in intervals), *targets])
    if not len(values):
        return
    room = 0.5 * float(np.ptp(values)) + 0.05 * float(np.abs(values).max()) + 0.01
    ends = _finite([end for _, *both in intervals for end in both])
    inside = np.clip([*ends, *values], values.min() - room, values.max() + room)
    margin = 0.05 * float(np.ptp(inside)) + 1e-9
    axis.set_xlim(inside.min() - margin, inside.max() + margin)


def _finite(numbers: Sequence[float]) -> np.ndarray:
    array = np.array(numbers, dtype=float)
    return array[np.isfinite(array)]
