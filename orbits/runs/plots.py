"""Plots that studies share: curves with their names at their ends, and a bar for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from orbits.runs.figure import (
    WIDTH,
    End,
    canvas,
    headline,
    label_ends,
    label_level,
    save_figure,
)
from orbits.runs.naming import display
from orbits.runs.palette import PALE, SHADES, TRUTH, looks, own_colour
from orbits.runs.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 45
"""Characters of an axis label that leave room for a remark in the same line."""


def curves(
    series: Mapping[str, Mapping[float, Sequence[float]]],
    path: Path,
    xlabel: str,
    ylabel: str,
    log2: bool = True,
    title: str = "",
) -> Path:
    """Draw a curve through the means at each place; bars reach from the smallest to the largest.

    Args:
        series: For each curve its values, one per seed, by place.
        path: File to write the figure to.
        xlabel: Name of the places.
        ylabel: Name of the values.
        log2: Whether places are powers of two.
        title: Title of the figure; empty for none.
    """
    style, ends = looks(list(series)), []
    with canvas(WIDTH, 4.4) as (figure, axes):
        for name, points in series.items():
            at = sorted(points)
            means = [fmean(points[x]) for x in at]
            below = [mean - min(points[x]) for mean, x in zip(means, at, strict=True)]
            above = [max(points[x]) - mean for mean, x in zip(means, at, strict=True)]
            axes.errorbar(at, means, yerr=(below, above), elinewidth=1, **style[name])
            ends.append(End(name, at[-1], means[-1], style[name]["color"]))
        if log2:
            axes.set_xscale("log", base=2)
            axes.set_xticks(sorted({x for points in series.values() for x in points}))
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.grid(axis="y")
        if title:
            headline(figure, title)
        label_ends(axes, ends)
        return save_figure(figure, path)


def bars(
    values: Mapping[str, Mapping[int | None, float]],
    path: Path,
    xlabel: str,
    level: float | None = None,
    named: str = "guessing",
    dots: str = "seeds",
    title: str = "",
    log: bool = False,
) -> Path:
    """Draw a bar per row with a dot per seed, and a dotted line at a level, with its name.

    Attentions have the colours of other figures; whatever has none is grey. A logarithmic axis
    has no 0 for bars to start from, so strokes mark the means.
    """
    with canvas(WIDTH, 1.2 + 0.27 * len(values)) as (figure, axes):
        for place, (name, seeds) in enumerate(values.items()):
            colour, each = own_colour(name), list(seeds.values())
            if log:
                axes.plot(fmean(each), place, "|", color=colour, ms=15, mew=2)
            else:
                axes.barh(place, fmean(each), color=colour, alpha=0.35, height=0.72)
            axes.plot(each, [place] * len(each), "o", color=colour, mec="white", mew=0.4, ms=5)
        axes.set_yticks(range(len(values)), list(map(display, values)))
        axes.set_ylim(len(values) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        if level is not None:
            label_level(axes, level, named)
        if title:
            headline(figure, title)
        gap = "\n" if len(xlabel) > LONGEST else " "
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
        marks = "strokes" if log else "bars"
        axes.set_xlabel(f"{xlabel}{gap}({marks}: means; dots: {dots})")
        return save_figure(figure, path)


def shares(axis: Axes, rows: Mapping[str, Sequence[Interval | None]], size: float = 8) -> None:
    """Fill a panel with a number for each row and column; larger numbers have a darker ground.

    Numbers whose interval holds 0 are grey.
    """
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap

    ends = [((at + 1) / 2, colour) for at, colour in SHADES]
    values = np.array([[np.nan if x is None else x.value for x in row] for row in rows.values()])
    colours = LinearSegmentedColormap.from_list("shares", ends)
    grid = np.arange(values.shape[1] + 1) - 0.5, np.arange(values.shape[0] + 1) - 0.5
    axis.pcolormesh(*grid, values, cmap=colours, vmin=-1.4, vmax=1.4, edgecolors="white", lw=1)
    for at, row in enumerate(rows.values()):
        for place, share in enumerate(row):
            text, colour = "-", PALE
            if share is not None:
                unsure = share.low <= 0 <= share.high
                text, colour = f"{share.value:z.2f}", "#8a929a" if unsure else TRUTH
            axis.text(place, at, text, ha="center", va="center", fontsize=size, color=colour)
    axis.set_yticks(range(len(rows)), list(map(display, rows)))
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
