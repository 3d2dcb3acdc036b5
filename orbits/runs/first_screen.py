"""The first screen of a page: one verdict, one table of few columns and rows, one figure.

They are the first of a report, which therefore begins with what matters most; the page shows them
once, and every other part below them. What does not fit of the table is below too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orbits.runs.naming import OF_MODELS, heading, in_box
from orbits.runs.report import Picture, Report, Section, size
from orbits.runs.table import NOTHING, Table

BESIDE = (730, 900)
"""Largest width and height of a figure beside a table, in its own pixels. A window of 1280 pixels
shows so wide a one at 83% of its size, where letters of 8 points have 10 pixels; the page's style
lets it be as high as that. A larger one stands below the table in its own size."""
MOST_COLUMNS = 7
"""Columns that a reader takes in at once, and that a window of 1280 pixels holds."""
MOST_ROWS = 12
"""Rows of two lines that a window of 800 pixels holds beside a verdict."""
BELOW = "all of them below"
LEFT_OUT = "The other columns are below."
OTHERS = "Other columns are in the page, or with --full."
"""Words for other columns in a terminal."""
MOST_SENTENCES = 6
"""Sentences that a terminal shows of a report."""


@dataclass(frozen=True)
class FirstScreen:
    """The parts of a report that stand above all others, and the sections left for below.

    Attributes:
        verdict: The first sentence; empty without one.
        table: The first table with a number, shortened and narrowed; None without one.
        whole: The same with all its rows and columns, for its CSV.
        picture: The first figure of the table's section, or else of all; None without one.
        sentences: The other sentences.
        sections: The sections without what stands above; those that held no more are left out.
    """

    verdict: str
    table: Table | None
    whole: Table | None
    picture: Picture | None
    sentences: Sequence[str]
    sections: Sequence[Section]

    @property
    def is_stacked(self) -> bool:
        """Whether the figure stands below the table: beside it, letters would be too small."""
        return self.picture is not None and not all(map(_fits_beside, self.picture.images))


def first_screen(report: Report) -> FirstScreen:
    """Return the first screen of a report."""
    tables = [(section, table) for section in report.sections for table in section.tables]
    measured = ((s, t) for s, t in tables if not (t.folded or s.folded) and _has_number(t))
    of, whole = next(measured, (None, None))
    places = [*([of] if of else []), *report.sections]  # best the figure of the table
    picture = next((x for section in places for x in section.pictures), None)
    verdict, *others = report.sentences or [""]
    shown = None if whole is None else narrowed(shortened(whole, verdict))
    if shown is not None and of is not None and not shown.title:
        shown = dataclasses.replace(shown, title=of.title)
    left = [_without(section, whole, picture) for section in report.sections]
    return FirstScreen(verdict, shown, whole, picture, others, [x for x in left if x is not None])


def brief(report: Report, failures: Sequence[str] = ()) -> str:
    """Return the first screen for a terminal, and the cells that have no result."""
    table, said = first_screen(report).table, list(report.sentences)
    if (more := len(said) - MOST_SENTENCES) > 0:
        said[MOST_SENTENCES:] = [f"and {more} more"]
    if table is not None:
        there = "all of them are in the page, or with --full"
        caption = table.caption.replace(BELOW, there).replace(LEFT_OUT, OTHERS)
        table = dataclasses.replace(table, caption=caption)
    sections = [] if table is None else [Section(table.title, [table])]
    return dataclasses.replace(report, sentences=said, sections=sections).to_text(failures)


def shortened(table: Table, verdict: str = "", most: int = MOST_ROWS) -> Table:
    """Return a table with at most ``most`` rows, in its own order; its caption says how many.

    These are the rows that its study puts in front, or else, of all, the first of each model or
    control that the verdict names, then the first of each other one, then the first of the rest.

    Args:
        table: The table, in which the best or most asked row of a model is its first.
        verdict: Verdict above the table.
        most: Largest number of rows.
    """
    if len(table.rows) <= most:
        return table
    first: dict[str, int] = {}
    for place in table.front or range(len(table.rows)):
        first.setdefault(_subject(table, place), place)
    named = [place for subject, place in first.items() if _names(verdict, subject)]
    candidates = table.front or range(len(table.rows))
    ranked = dict.fromkeys([*named, *first.values(), *candidates])
    chosen = sorted([*ranked][:most])
    said = f"{len(chosen):,} of {len(table.rows):,} rows; {BELOW}."
    return dataclasses.replace(
        table,
        rows=[table.rows[place] for place in chosen],
        caption=f"{table.caption} {said}".strip(),
        front=(),
    )


def _subject(table: Table, place: int) -> str:
    """Return whom a row is about: its model, or else its first name, or its first box."""
    of_models = [i for i, column in enumerate(table.columns) if column.heading in OF_MODELS]
    names = [i for i, value in enumerate(table.rows[place]) if value.kind == "name"]
    return table.rows[place][next(iter([*of_models, *names]), 0)].text


def _names(sentence: str, subject: str) -> bool:
    return bool(subject) and bool(re.search(rf"(?<![\w-]){re.escape(subject)}(?![\w-])", sentence))


def narrowed(table: Table, most: int = MOST_COLUMNS) -> Table:
    """Return a table with at most ``most`` columns; its caption names the columns left out.

    Names that are the same in every row go into the caption, if others tell the rows apart. Where
    that is not enough the other columns that say the same in every row follow; then those go that
    a terminal leaves out too; then the last ones.
    """
    places = list(range(len(table.columns)))
    alike = {
        place
        for place in places
        if len({(row[place].text, row[place].detail) for row in table.rows}) == 1
        and (len(table.rows) > 1 or table.rows[0][place].text == NOTHING.text)
    }
    names = {place for place in places if all(row[place].kind == "name" for row in table.rows)}
    if len(places) - len(alike & names) <= most:
        alike &= names if names - alike else set()
    kept = [place for place in places if place not in alike]
    if len(kept) == len(places) <= most:
        return table
    narrow = [place for place in kept if not table.columns[place].wide]
    chosen = (kept if len(kept) <= most else narrow)[:most]
    everywhere = [
        f"{heading(name)} {in_box(name, text)}"
        for place in sorted(alike)
        if (text := table.rows[0][place].text) not in ("", NOTHING.text)
        if (name := table.columns[place].heading)
    ]
    said = [f"In every row here: {', '.join(everywhere)}."] if everywhere else []
    said += [LEFT_OUT] if len(chosen) < len(kept) else []
    return dataclasses.replace(
        table,
        columns=[table.columns[place] for place in chosen],
        rows=[[row[place] for place in chosen] for row in table.rows],
        caption=" ".join([*([table.caption] if table.caption else []), *said]),
    )


def _has_number(table: Table) -> bool:
    return any(value.kind == "number" and value != NOTHING for row in table.rows for value in row)


def _without(section: Section, table: Table | None, picture: Picture | None) -> Section | None:
    """Return the rest of a section below the first screen; None if nothing is left.

    A table of which it shows some columns stays, and is folded if it shows some rows of it; not
    one whose other columns say the same in every row, which its caption says.
    """
    fits = table is None or (
        len(table.rows) <= MOST_ROWS and LEFT_OUT not in narrowed(table).caption
    )
    left = dataclasses.replace(
        section,
        tables=[
            dataclasses.replace(each, folded=len(each.rows) > MOST_ROWS) if each is table else each
            for each in section.tables
            if not (fits and each is table)
        ],
        pictures=[each for each in section.pictures if each is not picture],
    )
    had = bool(section.tables or section.pictures or section.sentences or section.warnings)
    has = bool(left.tables or left.pictures or left.sentences or left.warnings)
    return left if has or not had else None


def _fits_beside(image: Path | bytes) -> bool:
    """Tell whether an image is small enough for half of a window; what cannot be read is."""
    return all(own <= most for own, most in zip(size(image), BESIDE, strict=True))
