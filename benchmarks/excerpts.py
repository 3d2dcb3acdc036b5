"""Tables of a document that are taken from kept reports, or from some of their rows and columns.

A marker is a comment above the table. It names a run and the heading of the table in the run's
report. Further headings, of this run or of another that is named, add their rows. Of them it may
select columns, under other names, and rows, by what stands in a column::

    <!-- table: mqar: The sweep + Others + mad: The sweep | columns: variant as model; lr; steps
    | where: lr = 0.003; 0.01 | where: variant = softmax -->

``python -m benchmarks excerpts RESULTS.md`` writes the tables of a document anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from orbits.runs.naming import in_box
from orbits.runs.table import escape

KEPT = Path(__file__).parent / "results"
MARKER = re.compile(r"<!-- table: (?P<body>[\s\S]+?) -->\n(?P<table>\n(?:\|.*\n)*)?")
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)


@dataclass(frozen=True)
class Excerpt:
    """The tables, columns and rows that a marker asks for.

    Attributes:
        tables: Run and heading of each table.
        columns: Name of each column in the report and here; empty for all columns as they are.
        where: Column, and what may stand in it in the rows that are taken; rows meet all of them.
    """

    tables: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()


def parsed(body: str) -> Excerpt:
    """Return the excerpt that the text of a marker asks for."""
    first, *rest = (part.strip() for part in " ".join(body.split()).split(" | "))
    tables: list[tuple[str, str]] = []
    for part in first.split(" + "):
        named = re.fullmatch(r"([a-z0-9/_-]+): (.+)", part)
        if not named and not tables:
            raise ValueError(f"marker {part!r} names no table: write RUN: TITLE")
        tables.append((named[1], named[2]) if named else (tables[-1][0], part))
    columns: list[tuple[str, str]] = []
    where: list[tuple[str, tuple[str, ...]]] = []
    for part in rest:
        key, _, value = part.partition(": ")
        name, found, values = value.partition(" = ")
        if key == "columns":
            names = (each.split(" as ") for each in value.split("; "))
            columns += [(each[0], each[-1]) for each in names]
        elif key == "where" and found:
            where.append((name, tuple(values.split("; "))))
        else:
            raise ValueError(f"{part!r} in a marker: write columns: A; B or where: COLUMN = A; B")
    return Excerpt(tuple(tables), tuple(columns), tuple(where))


def plain(cell: str) -> str:
    """Return a cell without the marks that keep Markdown from reading it."""
    return re.sub(r"[\\`]", "", cell).strip()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def _named(head: str, cell: str) -> str:
    """Return a cell as a page shows it, with the names of models as readers know them."""
    shown = in_box(head, plain(cell))
    return cell if shown == plain(cell) else escape(shown)


def _position(heads: list[str], name: str, title: str) -> int:
    names = [plain(head) for head in heads]
    if names.count(name) != 1:
        raise ValueError(f"{names.count(name)} columns {name!r} under {title!r}; it has {names}")
    return names.index(name)


def _table(run: str, title: str, kept: Path) -> list[list[str]]:
    path = kept / run / "report.md"
    if not path.is_file():
        raise ValueError(f"no kept report of {run!r} in {kept}")
    headings = re.split(r"^#+ (.+)\n", path.read_text(encoding="utf-8"), flags=re.M)
    sections = {
        plain(name): text for name, text in zip(headings[1::2], headings[2::2], strict=True)
    }
    tables = TABLE.findall(sections.get(title, ""))
    if not tables:
        raise ValueError(f"no table under {title!r} in the report of {run!r}")
    return [_cells(line) for line in tables[0].splitlines()]


def rows(excerpt: Excerpt, kept: Path = KEPT) -> list[list[str]]:
    """Return the heads and the rows of an excerpt, as their pages show them, no row twice."""
    taken: list[list[str]] = []
    unmet = {(name, value) for name, values in excerpt.where for value in values}
    for run, title in excerpt.tables:
        heads, _, *body = _table(run, title, kept)
        columns = excerpt.columns or tuple((plain(head), head) for head in heads)
        places = [_position(heads, name, title) for name, _ in columns]
        asked = [(name, _position(heads, name, title), values) for name, values in excerpt.where]
        if not taken:
            taken.append([shown for _, shown in columns])
        for row in body:
            unmet -= {(name, plain(row[place])) for name, place, _ in asked}
            line = [_named(plain(heads[place]), row[place]) for place in places]
            if line not in taken and all(plain(row[at]) in values for _, at, values in asked):
                taken.append(line)
    if unmet:
        raise ValueError(f"no row of {excerpt.tables} has {sorted(unmet)}")
    return taken


def filled(text: str, kept: Path = KEPT) -> str:
    """Return a document with the tables under its markers as the kept reports have them."""

    def with_table(match: re.Match[str]) -> str:
        heads, *body = rows(parsed(match["body"]), kept)
        lines = [heads, ["---"] * len(heads), *body]
        table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        after = "" if "|" in (match["table"] or "") else "\n"
        return f"<!-- table: {match['body']} -->\n\n{table}{after}"

    return MARKER.sub(with_table, text)
