"""Keeping figures: what they say is drawn as it stands, and their files are there whole or not."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbits import artefacts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 110


def save(figure: Figure, path: str | Path, dpi: int = DPI) -> Path:
    """Write a figure in one step in the format of its suffix, close it and return its path.

    Raises:
        ValueError: There is no such format.
        OSError: The disk is full or the folder cannot be written.
    """
    import matplotlib.pyplot as plt

    path = Path(path)
    data = _drawn(figure, format=path.suffix[1:] or "png", dpi=dpi, facecolor="white")
    plt.close(figure)
    artefacts.write_bytes(path, data)
    return path


def png(figure: Figure, dpi: int = DPI) -> bytes:
    """Return a figure as PNG, on no ground, so that a page may show it on a dark one.

    The bytes have no date and no version in them.
    """
    return _drawn(figure, format="png", dpi=dpi, transparent=True, metadata={"Software": None})


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
