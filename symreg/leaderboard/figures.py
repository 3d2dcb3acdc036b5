"""Figures of a leaderboard, as PNG bytes: the same rows give the same bytes.

Each function draws some rows of one table, and returns None where there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from orbits import laws
from orbits.runs.figure import canvas, figure_png
from orbits.runs.naming import arm
from orbits.runs.palette import COLOURS, CONTROL, PALE, TRUTH
from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from orbits.runs.untrusted import printable
from symreg.formula.thresholds import TOLERANCE, VERDICTS
from symreg.leaderboard.axes import (
    ARMS,
    CONTESTANT,
    EDGE,
    WIDTH,
    colour,
    fixed_margins,
    interval,
    label,
    label_rows,
    legend,
    limit,
    row_height,
)
from symreg.leaderboard.rate import LawRate
from symreg.leaderboard.row import FORCES, SEARCH, Row
from symreg.points import NAMES

VARIABLES = dict(zip(NAMES, COLOURS, strict=False))
OUTCOMES = dict(
    zip(
        (*VERDICTS, "failed", "other"),
        (COLOURS[2], COLOURS[3], COLOURS[1], "#c5cad1", "#444444", COLOURS[4]),
        strict=True,
    )
)
MOST = 10
"""Model seeds of a row whose residuals are drawn, and searches whose fronts are: the first."""
UNITS = {"r": "r (AU)", "m1": "m1 (solar masses)", "m2": "m2 (solar masses)"}


def exponents(rows: Sequence[Row], law: str) -> bytes | None:
    """Draw the exponents and the constant of every row with their 95% intervals.

    The black line is what a perfect model would have: the row's ``law_exponents``, and the law's
    own constant where it is a power law. Contestants set the scale.
    """
    rows = [row for row in rows if row.exponents]
    if not rows:
        return None
    true_law = laws.get(law)
    constant = None if true_law.exponents is None else float(true_law.magnitude(1, 1, 1))
    panels, height = len(NAMES) + 1, 0.9 + row_height(rows) * len(rows)
    with canvas(WIDTH, height, ncols=panels, sharey=True) as (figure, axes):
        for axis, name in zip(axes, NAMES, strict=False):
            axis.set_xlabel(f"exponent of {name}")
            values = [row.exponents.get(name) for row in rows]
            targets = [row.law_exponents.get(name) for row in rows]
            _forest(axis, rows, values, targets, TOLERANCE)
        axes[-1].set_xlabel("constant (AU, M$_\\odot$, years)")
        _forest(axes[-1], rows, [row.constant for row in rows], [constant] * len(rows))
        label_rows(axes, rows)
        arms = dict.fromkeys(row.arm for row in rows if not row.is_control)
        marks: list[Any] = [
            _mark(ARMS.get(name, CONTESTANT), "model" if name == "-" else printable(arm(name), 60))
            for name in arms
        ]
        marks += [_mark(CONTROL, "control")] if any(row.is_control for row in rows) else []
        marks += [
            Line2D([], [], color=TRUTH, lw=1, label="the true law"),
            Patch(color=PALE, alpha=0.5, label=f"within {TOLERANCE:g} of it"),
        ]
        legend(figure, marks)
        return figure_png(figure)


def spread(rows: Sequence[Row]) -> bytes | None:
    """Draw the errors of each row's exponents beside those of the formulas that searches picked."""
    rows = [row for row in rows if row.laws]
    if not rows:
        return None
    most = max(len(row.laws) for row in rows)
    height = 1.1 + max(0.32, 0.17 * most) * len(rows)
    with canvas(WIDTH, height, ncols=2, sharey=True, width_ratios=(1, 1.5)) as (figure, axes):
        left, right = axes
        left.axvline(0, color=TRUTH, lw=1)
        limit(left, [gap for row in _scale(rows) for gap in _gaps(row).values()], [0.0])
        for place, row in enumerate(rows):
            for step, (name, gap) in enumerate(_gaps(row).items()):
                interval(left, place + 0.22 * (step - 1), gap, VARIABLES[name])
            _bars(right, place, row)
        left.set_xlabel("exponent minus the law's")
        right.set_xlabel("share of searches by verdict", loc="left")
        right.set_xlim(0, 2)  # the room of the texts beside the bars
        right.set_xticks([0, 0.5, 1.0])
        right.spines["bottom"].set_bounds(0, 1)
        right.grid(False)
        label_rows((left, right), rows)
        marks = [_mark(colour, f"exponent of {name}") for name, colour in VARIABLES.items()]
        outcomes = {outcome for row in rows for entry in row.laws for outcome in _outcomes(entry)}
        patches = [Patch(color=c, label=name) for name, c in OUTCOMES.items() if name in outcomes]
        legend(figure, [*marks, *patches])
        return figure_png(figure)


def fronts(rows: Sequence[Row]) -> bytes | None:
    """Draw the Pareto fronts of the first searches of each row, loss against complexity.

    A dot marks the formula that was chosen. The loss and the complexity are each engine's own.
    """
    panels = [
        (row, [x for x in row.of_kind(SEARCH) if x.ok and x.details.get("front")][:MOST])
        for row in rows
    ]
    panels = [(row, searches) for row, searches in panels if searches]
    if not panels:
        return None
    engines = sorted({str(x.case.get("engine")) for _, searches in panels for x in searches})
    colours = {engine: COLOURS[i % len(COLOURS)] for i, engine in enumerate(engines)}
    columns = min(len(panels), 4)
    lines = -(-len(panels) // columns)
    width = WIDTH * (1 + columns) / 5
    shape: dict[str, Any] = {"nrows": lines, "ncols": columns, "squeeze": False, "layout": "none"}
    with canvas(width, 1.0 + 2.0 * lines, **shape) as (figure, grid):
        fixed_margins(figure)
        axes = grid.ravel()
        for axis, (row, searches) in zip(axes, panels, strict=False):
            for search in searches:
                _front(axis, search, colours[str(search.case.get("engine"))])
            axis.set_yscale("log")
            axis.minorticks_off()
            axis.set_title(_two_lines(label(row)), fontsize=8)
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        figure.supxlabel("complexity", fontsize=8)
        figure.supylabel("loss", x=EDGE / width, fontsize=8)
        legend(figure, [_mark(colour, printable(name, 40)) for name, colour in colours.items()])
        return figure_png(figure)


def residuals(rows: Sequence[Row]) -> bytes | None:
    """Draw ln(predicted / true) of each row against r, m1 and m2: median and 5-95% band of bins.

    One line and one band for each of the first model seeds.
    """
    bins_of = ((x, [each.details.get("residuals") for each in x.of_kind(FORCES)]) for x in rows)
    panels = [(row, binned) for row, each in bins_of if (binned := [*filter(None, each)][:MOST])]
    if not panels:
        return None
    shape: dict[str, Any] = {"nrows": len(panels), "ncols": len(NAMES), "squeeze": False}
    shape |= {"sharex": "col", "sharey": "row", "layout": "none"}
    with canvas(WIDTH, 1.0 + 1.6 * len(panels), **shape) as (figure, axes):
        fixed_margins(figure)
        for in_row, (row, binned) in zip(axes, panels, strict=True):
            shade = colour(row)
            for axis, name in zip(in_row, NAMES, strict=True):
                for bins in (each[name] for each in binned if name in each):
                    band = bins["centre"], bins["low"], bins["high"]
                    axis.fill_between(*band, color=shade, alpha=0.2, lw=0)
                    axis.plot(bins["centre"], bins["median"], color=shade, lw=1.3)
                axis.axhline(0, color=TRUTH, lw=0.8)
                axis.set_xscale("log")
                axis.minorticks_off()
            in_row[0].set_title(label(row), loc="left", fontsize=8)
        for axis, name in zip(axes[-1], NAMES, strict=True):
            axis.set_xlabel(UNITS[name])
        figure.supylabel("ln(predicted / true)", x=EDGE / WIDTH, fontsize=8)
        return figure_png(figure)


def _forest(
    axis: Axes,
    rows: Sequence[Row],
    values: Sequence[Interval | None],
    targets: Sequence[float | None],
    tolerance: float = 0.0,
) -> None:
    """Draw a value and its interval in each row, beside its target and the range close to it."""
    scale = _scale(rows)
    intervals = [value for row, value in zip(rows, values, strict=True) if value and row in scale]
    known = [target for target in targets if target is not None]
    ends = [target + side * 1.1 * tolerance for target in known for side in (-1, 1)]
    limit(axis, intervals, ends or known)
    for place, (row, value, target) in enumerate(zip(rows, values, targets, strict=True)):
        if target is not None:
            axis.vlines(target, place - 0.5, place + 0.5, color=TRUTH, lw=1)
            near = target - tolerance, target + tolerance
            axis.fill_betweenx((place - 0.5, place + 0.5), *near, color=PALE, alpha=0.35, lw=0)
        if value is not None:
            interval(axis, place, value, colour(row), told=True)
        axis.locator_params(axis="x", nbins=4)


def _scale(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that set an axis: a control of another law must not squeeze the others."""
    return [row for row in rows if not row.is_control] or rows


def _gaps(row: Row) -> dict[str, Interval]:
    """Return each exponent minus the law's."""
    both = {
        x: (row.exponents[x], row.law_exponents[x])
        for x in NAMES
        if x in row.exponents and x in row.law_exponents
    }
    return {
        x: Interval(value - target, low - target, high - target)
        for x, ((value, low, high), target) in both.items()
    }


def _bars(axis: Axes, place: int, row: Row) -> None:
    """Draw one stacked bar per engine in the slot of a row, with the number of shapes beside."""
    thick = 0.8 / len(row.laws)
    for number, entry in enumerate(row.laws):
        height, start = place - 0.4 + thick * (number + 0.5), 0.0
        for outcome, count in _outcomes(entry).items():
            share = count / entry.total
            axis.barh(height, share, thick * 0.85, start, color=OUTCOMES[outcome])
            start += share
        shapes = "1 shape" if entry.shapes == 1 else f"{entry.shapes} shapes"
        text = f"{printable(entry.engine, 24)}: {shapes} in {entry.total}"
        axis.text(1.03, height, text, fontsize=8, va="center")


def _outcomes(entry: LawRate) -> Mapping[str, int]:
    """Return how many searches ended in each outcome, in the order of ``OUTCOMES``."""
    counts = dict.fromkeys(OUTCOMES, 0) | {"failed": entry.failed}
    for verdict, count in entry.verdicts.items():
        counts[verdict if verdict in VERDICTS else "other"] += count
    return {outcome: count for outcome, count in counts.items() if count}


def _front(axis: Axes, search: Result, colour: str) -> None:
    front = search.details["front"]
    losses = [equation["loss"] for equation in front]
    # A loss of exactly 0 has no place on a logarithmic axis: it is drawn beside the least other.
    least = min((loss for loss in losses if loss > 0), default=1e-16)
    losses = [max(loss, least) for loss in losses]
    sizes = [equation["complexity"] for equation in front]
    axis.plot(sizes, losses, color=colour, lw=0.8, alpha=0.6)
    for size, loss, equation in zip(sizes, losses, front, strict=True):
        if equation["expression"] == search.details.get("expression"):
            axis.plot(size, loss, "o", color=colour, ms=4.5, mec="white", mew=0.6, zorder=3)


def _mark(colour: str, text: str) -> Line2D:
    return Line2D([], [], color=colour, marker="o", ms=4, label=text)


def _two_lines(text: str) -> str:
    """Break a long title before its number of seeds, or else after a comma."""
    cut = max(text.rfind(" (", 0, 31), text.rfind(", ", 0, 31) + 1) if len(text) > 29 else 0
    return f"{text[:cut]}\n{text[cut + 1 :]}" if cut > 0 else text
