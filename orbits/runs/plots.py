"""Plots that studies share: curves with their names at their ends, and a bar for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from orbits.runs.figure import End, canvas, label_ends, label_level, save_figure
from orbits.runs.naming import display
from orbits.runs.palette import looks, own_colour


def curves(
    series: Mapping[str, Mapping[float, Sequence[float]]],
    path: Path,
    xlabel: str,
    ylabel: str,
    log2: bool = True,
) -> Path:
    """Draw a curve through the means at each place; bars reach from the smallest to the largest.

    Args:
        series: For each curve its values, one per seed, by place.
        path: Where to write the figure.
        xlabel: Name of the places.
        ylabel: Name of the values.
        log2: Whether places are powers of two.
    """
    style, ends = looks(list(series)), []
    with canvas(7.6, 4.4) as (figure, axes):
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
        label_ends(axes, ends)
        return save_figure(figure, path)


def bars(
    values: Mapping[str, Sequence[float]],
    path: Path,
    xlabel: str,
    level: float | None = None,
    named: str = "guessing",
    dots: str = "seeds",
) -> Path:
    """Draw a bar per row with a dot per seed, and a dotted line at a level, with its name.

    Attentions have the colours of other figures; whatever has none is grey.
    """
    with canvas(7.4, 1.0 + 0.27 * len(values)) as (figure, axes):
        for place, (name, each) in enumerate(values.items()):
            colour = own_colour(name)
            axes.barh(place, fmean(each), color=colour, alpha=0.35, height=0.72)
            axes.plot(each, [place] * len(each), "o", color=colour, mec="white", mew=0.4, ms=5)
        axes.set_yticks(range(len(values)), list(map(display, values)))
        axes.set_ylim(len(values) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        if level is not None:
            label_level(axes, level, named)
        axes.set_xlabel(f"{xlabel} (bars: means; dots: {dots})")
        return save_figure(figure, path)
