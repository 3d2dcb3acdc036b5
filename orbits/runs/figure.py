"""Figures: one style, one palette, plots that studies share; files are there whole or not."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from orbits.runs import artefact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("orrery.mplstyle")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00")
"""Of series, told apart by the colour-blind: blue, vermilion, green, sky blue, purple, orange."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Of series, so that colour is never the only sign; seven, so that pairs recur after 42 series."""
LINES = ("-", "--", ":")
CONTROL = "#5c6670"
"""Grey, for controls."""
CONTROL_MARKERS = ("x", "+", "*", "1")
TRUTH = "#222222"
DPI = 110


def save_figure(figure: Figure, path: str | Path, dpi: int = DPI) -> Path:
    """Write a figure in one step in the format of its suffix, close it and return its path.

    Beside a PNG stands the same drawing as SVG, of which a page hands out a copy.

    Raises:
        ValueError: There is no such format.
        OSError: The disk is full or the folder cannot be written.
    """
    import matplotlib.pyplot as plt

    path = Path(path)
    data = _drawn(figure, format=path.suffix[1:] or "png", dpi=dpi, facecolor="white")
    drawing = figure_svg(figure, dpi) if path.suffix == ".png" else None
    plt.close(figure)
    artefact.write_bytes(path, data)
    if drawing is not None:
        artefact.write_bytes(path.with_suffix(".svg"), drawing)
    return path


def figure_png(figure: Figure, dpi: int = DPI) -> bytes:
    """Return a figure as PNG, on no ground, so that a page may show it on a dark one.

    The bytes have no date and no version in them.
    """
    return _drawn(figure, format="png", dpi=dpi, transparent=True, metadata={"Software": None})


def figure_svg(figure: Figure, dpi: int = DPI) -> bytes:
    """Return a figure as SVG whose text stays text; the same figure gives the same bytes."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "orrery"}):
        return _drawn(
            figure,
            format="svg",
            dpi=dpi,
            facecolor="white",
            metadata={"Date": None, "Creator": None},
        )


def as_written(figure: Figure) -> Figure:
    """Return a figure in which a dollar sign starts no formula: names from files may have one.

    The powers of ten along an axis, which matplotlib writes as formulas, stay formulas.
    """
    from matplotlib.text import Text
    from matplotlib.ticker import LogFormatter

    ticks = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                ticks += axis.get_major_ticks()
            if isinstance(axis.get_minor_formatter(), LogFormatter):
                ticks += axis.get_minor_ticks()
    powers = {label for tick in ticks for label in (tick.label1, tick.label2)}
    for text in figure.findobj(Text):
        if text not in powers:
            text.set_parse_math(False)
    return figure


def _drawn(figure: Figure, **options: Any) -> bytes:
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box stands for it
        as_written(figure).savefig(picture, **options)
    return picture.getvalue()


@contextlib.contextmanager
def canvas(width: float = 8.2, height: float = 4.4, **subplots: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes in the style of the suite, for use without a display.

    Args:
        width: Inches.
        height: Inches.
        **subplots: Passed to ``matplotlib.pyplot.subplots``.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.style.context(STYLE):
        figure, axes = plt.subplots(figsize=(width, height), **subplots)
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def look(number: int) -> dict[str, Any]:
    """Return colour, line and marker of the series of a number, as arguments of matplotlib."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "ls": LINES[number // len(COLOURS) % len(LINES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def legend(figure: Figure, title: str | None = None, above: bool = False) -> None:
    """Give a figure one legend of all its panels, in as many columns as its names leave room for.

    Args:
        figure: Its panels have labelled artists.
        title: Title of the legend.
        above: Put it above the panels instead of below them.
    """
    found = {
        label: handle
        for axis in figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    letters = 16 * figure.get_figwidth()  # of a line
    figure.legend(
        found.values(),
        found.keys(),
        title=title,
        title_fontsize=8,
        loc="outside upper center" if above else "outside lower center",
        ncols=max(1, min(4, int(letters / (max(map(len, found), default=1) + 8)))),
        fontsize=8,
        frameon=False,
    )


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
    with canvas() as (figure, axes):
        for number, (name, points) in enumerate(series.items()):
            at = sorted(points)
            means = [fmean(points[x]) for x in at]
            below = [mean - min(points[x]) for mean, x in zip(means, at, strict=True)]
            above = [max(points[x]) - mean for mean, x in zip(means, at, strict=True)]
            axes.errorbar(at, means, yerr=(below, above), label=name, elinewidth=1, **look(number))
        if log2:
            axes.set_xscale("log", base=2)
            axes.set_xticks(sorted({x for points in series.values() for x in points}))
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.set(xlabel=xlabel, ylabel=ylabel)
        figure.legend(loc="outside right upper")
        return save_figure(figure, path)


def bars(
    values: Mapping[str, Sequence[float]],
    path: Path,
    xlabel: str,
    level: float | None = None,
    named: str = "guessing",
) -> Path:
    """Draw a bar per row with a dot per seed, and a dotted line at a level, if it has a name."""
    with canvas(7.4, 0.9 + 0.3 * len(values)) as (figure, axes):
        for place, each in enumerate(values.values()):
            axes.barh(place, fmean(each), color=COLOURS[0], alpha=0.55, height=0.7)
            axes.plot(each, [place] * len(each), "o", color=COLOURS[0])
        if level is not None:
            axes.axvline(level, color=TRUTH, lw=0.9, ls=":")
            xlabel = f"{xlabel} (dotted line: {named})"
        axes.set_yticks(range(len(values)), list(values))
        axes.invert_yaxis()
        axes.set_xlabel(f"{xlabel}; dots are seeds")
        return save_figure(figure, path)
