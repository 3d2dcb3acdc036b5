"""Labels, limits and intervals of the panels in a leaderboard's figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbits.runs.palette import COLOURS, CONTROL
from orbits.runs.statistics import Interval
from orbits.runs.untrusted import printable
from symreg.leaderboard import words
from symreg.leaderboard.row import Row
from symreg.leaderboard.tables import seeds

WIDTH = 11  # inches
CONTESTANT = COLOURS[0]


def fixed_margins(figure: Figure) -> None:
    """Give many panels margins of a fixed size: fitting them takes longer than drawing them.

    The figure has the layout ``none``.
    """
    width, height = figure.get_size_inches()
    figure.subplots_adjust(
        left=0.7 / width,
        right=1 - 0.1 / width,
        bottom=0.5 / height,
        top=1 - 0.6 / height,
        wspace=0.2,
        hspace=0.4,
    )


def label(row: Row) -> str:
    """Return a row's name and its number of seeds, cut so that no part of it hides another."""
    text = printable(words.name(row, 28), 60)
    return text if row.is_control or seeds(row) == "-" else f"{text} ({seeds(row)})"


def label_rows(axes: Sequence[Axes], rows: Sequence[Row]) -> None:
    """Name the rows along the shared y axis, the first on top, with a line above the controls."""
    axes[0].set_yticks(range(len(rows)), [label(row) for row in rows])
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    first = next((place for place, row in enumerate(rows) if row.is_control), 0)
    for axis in axes if first else ():
        axis.axhline(first - 0.5, color=CONTROL, lw=0.6, ls=":")


def legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Put one legend above all panels."""
    kwargs: dict[str, Any] = {"ncols": len(handles), "frameon": False, "fontsize": 7}
    kwargs["loc"] = "outside upper right" if figure.get_layout_engine() else "upper right"
    figure.legend(handles=handles, **kwargs)


def interval(axis: Axes, place: float, value: Interval, colour: str) -> None:
    """Draw a value and its interval, or an arrow where the value lies beyond the axis."""
    middle, low, high = value
    left, right = axis.get_xlim()
    axis.hlines(place, low, high, color=colour, lw=2)
    if left <= middle <= right:
        axis.plot(middle, place, "o", color=colour, ms=3.5)
    elif np.isfinite(middle):
        edge, arrow = (left, "<") if middle < left else (right, ">")
        axis.plot(edge, place, arrow, color=colour, ms=4.5, clip_on=False)


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
