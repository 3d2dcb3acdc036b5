"""Tables of objects as a notebook shows them: the HTML that ``_repr_html_`` returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from orbits.runs.untrusted import printable


def html_table(
    rows: Iterable[Sequence[object]], header: Sequence[str] = (), caption: str = ""
) -> str:
    """Return a table as HTML; every text is escaped, because it may come from a file.

    Args:
        rows: The boxes of each row.
        header: Headings of the columns; none, and the first box of a row is its heading.
        caption: Caption above the table.
    """
    parts = [f"<caption>{_text(caption)}</caption>"] if caption else []
    if header:
        parts.append(f"<tr>{''.join(f'<th>{_text(x)}</th>' for x in header)}</tr>")
    for first, *others in rows:
        tag = "td" if header else "th"
        boxes = "".join(f"<td>{_text(x)}</td>" for x in others)
        parts.append(f"<tr><{tag}>{_text(first)}</{tag}>{boxes}</tr>")
    return f"<table>{''.join(parts)}</table>"


def _text(value: object) -> str:
    return escape(printable(value, limit=1000))
