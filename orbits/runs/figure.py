"""Figures in one style: canvas, legend, labels at lines; files are there whole or not."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from orbits.runs import artefact, folder
from orbits.runs.naming import display
from orbits.runs.palette import TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("orrery.mplstyle")
DPI = 110
WIDTH = 5.6
"""Inches of a figure whose letters of 8 points half of a desk's window shows with 11 pixels, and a
telephone of 390 pixels with 7."""
TICKS = 3
"""Most intervals between the marks of a small panel's axes, so that numbers do not meet."""
FORMATS = ("png", "svg", "pdf", "eps", "jpg", "jpeg", "tif", "tiff", "webp")
"""Endings of pictures that are written."""
BOLD_LETTERS = 10.5
"""Letters of a headline in an inch."""


def figure_path(out: Path, name: str) -> Path:
    """Return the path of a figure whose name has words of results, which may be a stranger's.

    It is a file of the folder itself, whatever the words.

        >>> figure_path(Path("figures"), "../../task").as_posix()
        'figures/task.png'
    """
    return out / f"{re.sub(r'[^A-Za-z0-9_-]+', '_', name).strip('_')[:100] or 'figure'}.png"


def check_picture(path: Path) -> None:
    """Refuse a picture that is a folder, cannot be written, or says by its ending that it is none.

    Raises:
        PermissionError: It cannot be written.
        ValueError: It is a folder, or of a form that is not drawn.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a picture with --out")
    if path.suffix[1:].lower() not in ("", *FORMATS):
        raise ValueError(f"{path}: pictures are written as {', '.join(FORMATS)}")
    folder.check_writable(path)


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


class Drawing(bytes):
    """A picture as PNG, with the same drawing as SVG for a page to hand out."""

    svg: bytes = b""


def figure_png(figure: Figure, dpi: int = DPI) -> Drawing:
    """Return a figure as PNG, on no ground, so that a page may show it on a dark one.

    The bytes have no date and no version in them.
    """
    metadata = {"Software": None}
    made = Drawing(_drawn(figure, format="png", dpi=dpi, transparent=True, metadata=metadata))
    made.svg = figure_svg(figure, dpi)
    return made


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
    from matplotlib import rc_context

    picture = io.BytesIO()
    with warnings.catch_warnings(), rc_context({"figure.constrained_layout.use": False}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box stands for it
        if engine := as_written(figure).get_layout_engine():
            # Once for all formats, and without the drawing that matplotlib would throw away.
            engine.execute(figure)
            figure.set_layout_engine(None)
        figure.savefig(picture, **options)
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


@contextlib.contextmanager
def panels(
    n: int, most: int, width: float, height: float, margin: float = 0.0, **subplots: Any
) -> Iterator[tuple[Any, list[Axes]]]:
    """Yield a figure and the axes of its panels in rows, as :func:`canvas`.

    Args:
        n: Number of panels.
        most: Panels side by side at most.
        width: Inches of a panel.
        height: Inches of a panel.
        margin: Inches beside and above all panels.
        **subplots: Passed to ``matplotlib.pyplot.subplots``.
    """
    across = min(most, n)
    down = -(-n // across)
    shape = {"nrows": down, "ncols": across, "squeeze": False, **subplots}
    with canvas(margin + width * across, margin + height * down, **shape) as (figure, axes):
        for axis in axes.flat[n:]:
            axis.set_visible(False)
        yield figure, list(axes.flat[:n])


def legend(figure: Figure, title: str | None = None, above: bool = False) -> None:
    """Give a figure one legend of all its panels, in as many columns as names leave room for.

    Args:
        figure: Its panels have labelled artists, whose labels are shown as names.
        title: Title of the legend.
        above: Put it above the panels instead of below them.
    """
    found = {
        display(label): handle
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
    )


def headline(figure: Figure, text: str) -> None:
    """Write a headline above a figure, at its left; lines break where it ends."""
    lines = textwrap.fill(text, int(BOLD_LETTERS * figure.get_figwidth()))
    figure.suptitle(lines, x=0.01, ha="left", fontsize=10, fontweight="bold")


class End(NamedTuple):
    """The end of a line, at which its name is to be written.

    Attributes:
        name: The name.
        x: Place of the end along x, in data.
        y: Place of the end along y.
        colour: Colour of the line.
    """

    name: str
    x: float
    y: float
    colour: str


def label_ends(axis: Axes, ends: Sequence[End], size: float = 8) -> None:
    """Write names at the right of a panel, each as near to the end of its line as there is room.

    To be called when the limits of the axes stand; a line that leaves the panel is met at its edge.
    """
    import numpy as np
    from scipy.optimize import isotonic_regression

    ends = [end for end in ends if np.isfinite(end.y)]
    if not ends:
        return
    axis.autoscale_view()  # limits that wait for it: the transform of data does not
    data = np.array([(end.x, end.y) for end in ends])
    tips = np.clip(axis.transAxes.inverted().transform(axis.transData.transform(data)), 0, 1)
    heights = tips[:, 1]
    order = np.argsort(heights, kind="stable")
    panel = axis.bbox.height / axis.figure.dpi * 72  # points
    steps = 1.3 * size / panel * np.arange(len(ends))
    places = isotonic_regression(heights[order] - steps).x
    places = np.clip(places, 0, max(0, 1 - steps[-1])) + steps
    for number, place in zip(order, places, strict=True):
        name, _, _, colour = ends[number]
        axis.annotate(
            display(name),
            tips[number],
            (1.03, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            fontsize=size,
            va="center",
            annotation_clip=False,
            arrowprops={
                **{"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 1, "shrinkB": 2},
                "relpos": (0, 0.5),  # from the left of the name, not across others
            },
        )


def label_level(axis: Axes, value: float, text: str, colour: str = TRUTH, **line: Any) -> None:
    """Draw a vertical line at a value and write its meaning above the panel."""
    axis.axvline(value, **{"color": colour, "lw": 0.9, "ls": ":", "zorder": 1.5, **line})
    axis.annotate(
        text,
        (value, 1),
        (0, 2),
        xycoords=axis.get_xaxis_transform(),
        textcoords="offset points",
        color=colour,
        fontsize=8,
        ha="center",
        va="bottom",
    )
