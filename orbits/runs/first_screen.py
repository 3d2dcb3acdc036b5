"""The first screen of a page: one verdict, one table of at most seven columns, one figure.

They are the first of a report, which therefore begins with what matters most; the page shows them
once, and every other part below them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from orbits.runs.report import Picture, Report, Section
from orbits.runs.table import NOTHING, Table

MOST_COLUMNS = 7
"""Columns that a reader takes in at once, and that a window of 1280 pixels holds."""


@dataclass(frozen=True)
class FirstScreen:
    """What stands above everything else, and what is left for below.

    Attributes:
        verdict: The first sentence; empty without one.
        table: The first table with a number, narrowed; None without one.
        picture: The first figure of the table's section, or else of all; None without one.
        sentences: The other sentences.
        sections: The sections without what stands above; those that held no more are left out.
    """

    verdict: str
    table: Table | None
    picture: Picture | None
    sentences: Sequence[str]
    sections: Sequence[Section]


def first_screen(report: Report) -> FirstScreen:
    """Return what of a report stands on its first screen."""
    tables = [(section, table) for section in report.sections for table in section.tables]
    measured = ((s, t) for s, t in tables if not (t.folded or s.folded) and _has_number(t))
    of, whole = next(measured, (None, None))
    places = [*([of] if of else []), *report.sections]  # best the figure of the table
    picture = next((x for section in places for x in section.pictures), None)
    shown = None if whole is None else narrowed(whole)
    if shown is not None and of is not None and not shown.title:
        shown = dataclasses.replace(shown, title=of.title)
    dropped = whole if whole is not None and len(whole.columns) <= MOST_COLUMNS else None
    left = [_without(section, dropped, picture) for section in report.sections]
    verdict, *others = report.sentences or [""]
    return FirstScreen(verdict, shown, picture, others, [x for x in left if x is not None])


def narrowed(table: Table, most: int = MOST_COLUMNS) -> Table:
    """Return a table with at most ``most`` columns; what is left out is named in its caption.

    Columns that say the same in every row go first, into the caption; then those that a terminal
    leaves out too; then the last ones.
    """
    places = list(range(len(table.columns)))
    if len(places) <= most:
        return table
    alike = {
        place
        for place in places
        if len(table.rows) > 1
        and len({(row[place].text, row[place].detail) for row in table.rows}) == 1
    }
    kept = [place for place in places if place not in alike]
    narrow = [place for place in kept if not table.columns[place].wide]
    chosen = (kept if len(kept) <= most else narrow)[:most]
    everywhere = [
        f"{table.columns[place].heading} {table.rows[0][place].text}"
        for place in sorted(alike)
        if table.rows[0][place] != NOTHING and table.rows[0][place].text
    ]
    said = [f"In every row: {', '.join(everywhere)}."] if everywhere else []
    said += ["The other columns are below."] if len(chosen) < len(kept) else []
    return dataclasses.replace(
        table,
        columns=[table.columns[place] for place in chosen],
        rows=[[row[place] for place in chosen] for row in table.rows],
        caption=" ".join([*([table.caption] if table.caption else []), *said]),
    )


def _has_number(table: Table) -> bool:
    return any(value.kind == "number" and value != NOTHING for row in table.rows for value in row)


def _without(section: Section, table: Table | None, picture: Picture | None) -> Section | None:
    """Return a section without what the first screen shows; None if nothing is left."""
    left = dataclasses.replace(
        section,
        tables=[each for each in section.tables if each is not table],
        pictures=[each for each in section.pictures if each is not picture],
    )
    had = bool(section.tables or section.pictures or section.sentences or section.warnings)
    has = bool(left.tables or left.pictures or left.sentences or left.warnings)
    return left if has or not had else None
