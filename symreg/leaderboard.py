"""The leaderboard: result lines -> rows -> table, made from the lines alone.

This file draws the tables, one per task and protocol; :mod:`symreg.result_rows` makes the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from symreg.exponents import Interval
from symreg.points import NAMES
from symreg.result_rows import LawRate, Row, read_lines, rows, separated, wilson

__all__ = [
    "LawRate",
    "Row",
    "read_lines",
    "rows",
    "separated",
    "to_markdown",
    "to_text",
    "wilson",
]

_MODEL = ("model", "arm", "labels", "seeds", "R2 log F")
_ENGINE = ("engine", "law", "c of law", "shape")
HEADINGS = (*_MODEL, *NAMES, "c", *_ENGINE)
NOTES = (
    "R2: share dropped = predictions that are not positive, which have no logarithm.",
    "Exponents and c: mean over seeds [envelope of the seeds' 95% bootstrap intervals].",
    "law: searches whose formula is the law / searches, failed ones included [Wilson 95%].",
)


def to_text(table: Sequence[Row]) -> str:
    """Return one aligned table per task and protocol, with the controls in a block below."""
    blocks = []
    for title, members in _tables(table):
        lines = [list(HEADINGS)]
        separators = []
        for control, part in groupby(members, key=lambda row: row.is_control):
            if control:
                separators.append(len(lines))
                lines.append(["controls"])
            lines += [cells for row in part for cells in _cells(row)]
        widths = [
            max(len(line[i]) for line in lines if i < len(line)) for i in range(len(HEADINGS))
        ]
        drawn = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip()
            for line in lines
        ]
        drawn.insert(1, "-" * max(map(len, drawn)))
        blocks.append("\n".join([title, *drawn]))
    return "\n\n".join([*blocks, "\n".join(NOTES)]) + "\n"


def to_markdown(table: Sequence[Row]) -> str:
    """Return one Markdown table per task and protocol, and one more for its controls."""
    blocks = []
    for title, members in _tables(table):
        for control, part in groupby(members, key=lambda row: row.is_control):
            lines = [_bar(HEADINGS), _bar(["---"] * len(HEADINGS))]
            lines += [_bar(cells) for row in part for cells in _cells(row)]
            blocks.append(f"### {title}{', controls' if control else ''}\n\n" + "\n".join(lines))
    return "\n\n".join([*blocks, "\n".join(f"- {note}" for note in NOTES)]) + "\n"


def _tables(table: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for (task, protocol), members in groupby(table, key=lambda row: (row.task, row.protocol)):
        yield f"{task}, protocol {protocol}", list(members)


def _cells(row: Row) -> list[list[str]]:
    """Return one line per engine; the row's own cells are written once."""
    seeds = "1 seed" if row.seeds == 1 else f"{row.seeds} seeds"
    if not row.seeds:
        seeds = "-"  # a control without a model, or a row whose every seed failed
    own = [row.model, row.arm, row.labels]
    own.append(seeds + (f", {row.failed} failed" if row.failed else ""))
    own.append(_r2(row))
    own += [_interval(row.exponents.get(name)) for name in NAMES]
    own.append(_interval(row.constant))
    laws = [_law(entry) for entry in row.laws] or [["-"] * 4]
    return [(own if i == 0 else [""] * len(own)) + law for i, law in enumerate(laws)]


def _law(entry: LawRate) -> list[str]:
    rate = f"{entry.found}/{entry.total} [{entry.low:.2f}, {entry.high:.2f}]"
    if entry.failed:
        rate += f", {entry.failed} failed"
    constant = "-" if entry.constant is None else f"{entry.constant:.4g}"
    shape = "-"
    if entry.shape:
        text = entry.shape if len(entry.shape) <= 60 else f"{entry.shape[:57]}..."
        shape = f"{text} ({entry.shape_count}x)"
    return [entry.engine, rate, constant, shape]


def _r2(row: Row) -> str:
    if row.r2_log is None:
        return "-"
    mean, low, high = row.r2_log
    text = f"{mean:.4f}" if row.seeds < 2 else f"{mean:.4f} ({low:.4f}..{high:.4f})"
    return f"{text}, {row.dropped:.0%} dropped" if row.dropped else text


def _interval(value: Interval | None) -> str:
    return "-" if value is None else f"{value[0]:.3g} [{value[1]:.3g}, {value[2]:.3g}]"


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
