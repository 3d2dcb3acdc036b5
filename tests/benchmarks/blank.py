"""Figures that are composed and not painted, which is most of a report's time."""

import io

from PIL import Image

from orbits.runs import figure


def undrawn(monkeypatch):
    """Let every figure be a blank picture of its size, on a page as in a file.

    Of a kept run and of a run of the flagship they are painted in ``test_reports_hostile.py`` and
    ``newton/test_run.py``.
    """
    monkeypatch.setattr(figure, "_drawn", _blank)


def _blank(drawn, *, format="png", dpi=figure.DPI, **_):
    if format == "svg":
        return b'<svg xmlns="http://www.w3.org/2000/svg"/>'
    size, picture = (drawn.get_size_inches() * dpi).astype(int), io.BytesIO()
    Image.new("1", tuple(map(int, size))).save(picture, format)
    return picture.getvalue()
