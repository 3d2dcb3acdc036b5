"""Values from files: model names, formulas, errors and numbers, which anyone may have written."""

from __future__ import annotations

import math
import re
from typing import Any

ACTIVE = r"[\\`|]|\](?=[(\[:])"
"""Characters that start code in Markdown, end a cell of a table or make a link of brackets."""


def is_number(value: object) -> bool:
    """Tell whether a value is a finite number: YAML and JSON have nan, and True is an int."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def printable(text: object, limit: int = 200) -> str:
    r"""Return a string without control characters, line breaks or lone surrogates, cut to length.

    What does not print, among it the marks that reverse the direction of writing, is written
    as an escape such as ``\x1b``: it can neither steer a terminal nor hide.
    """
    shown = _visible(str(text)[:limit])
    return shown if len(shown) <= limit and len(str(text)) <= limit else f"{shown[: limit - 1]}…"


def lines(value: Any) -> Any:
    """Return text of several lines, each as :func:`printable` has it, and anything else as it is.

    For the ``finalize`` of a jinja environment; what is HTML already stays so.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return "\n".join(map(_visible, value.split("\n")))


def markdown(text: str, marks: str = ACTIVE) -> str:
    """Return text that in Markdown is neither HTML nor a link nor code, on one line.

    Args:
        text: The text.
        marks: A pattern of the marks that are escaped; by default those that do more than
            emphasise.
    """
    text = _visible(text)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return re.sub(f"({marks})", r"\\\1", text)


def _visible(text: str) -> str:
    if text.isprintable():  # nearly always, and a report has millions
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
