"""Downloads that a page holds, without a network: its tables as CSV and its figures as SVG."""

from __future__ import annotations

import base64
import csv
import io
import re
from pathlib import Path

from orbits.runs.table import NOTHING, Table, Value
from orbits.runs.untrusted import printable

LARGEST_SVG = 1_000_000
"""Bytes of a drawing beyond which a page leaves it out; the file stays beside the PNG."""
CALCULATED = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a text that a spreadsheet would take for a formula."""
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")


def to_csv(table: Table) -> str:
    """Return a table as CSV: columns of texts, and of intervals or remarks where there are any.

    A name or a formula from a file that a spreadsheet would calculate begins with an apostrophe.
    """
    detailed = [any(row[place].detail for row in table.rows) for place in range(len(table.columns))]
    header: list[str] = []
    for column, has_detail in zip(table.columns, detailed, strict=True):
        heading = printable(column.heading, 2000)
        header += [heading, f"{heading}: interval or remark"] if has_detail else [heading]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(_inert, header))
    for row in table.rows:
        boxes: list[str] = []
        for value, has_detail in zip(row, detailed, strict=True):
            boxes.append(_text(value))
            boxes += [_inert(printable(value.detail, 2000))] if has_detail else []
        writer.writerow(boxes)
    return file.getvalue()


def csv_url(table: Table) -> str:
    """Return a table as a data URL of CSV."""
    return f"data:text/csv;charset=utf-8;base64,{_encoded(to_csv(table).encode())}"


def svg_url(image: Path | bytes) -> str:
    """Return the drawing beside an image as a data URL; empty if there is none, or a large one."""
    if isinstance(image, bytes):
        drawing = getattr(image, "svg", b"")
    else:
        path = image.with_suffix(".svg")
        fits = path.is_file() and path.stat().st_size <= LARGEST_SVG
        drawing = path.read_bytes() if fits else b""
    if not 0 < len(drawing) <= LARGEST_SVG:
        return ""
    return f"data:image/svg+xml;base64,{_encoded(drawing)}"


def file_name(title: str, suffix: str) -> str:
    """Return a title as the name of a file, of letters, digits and hyphens alone."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].strip("-")
    return f"{words or 'table'}.{suffix}"


def _text(value: Value) -> str:
    if value == NOTHING:
        return ""
    text = printable(value.text, 2000)
    return text if value.kind == "number" and value.order is not None else _inert(text)


def _inert(text: str) -> str:
    is_plain = text == "-" or NUMBER.fullmatch(text)
    return f"'{text}" if text.startswith(CALCULATED) and not is_plain else text


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
