"""The sections of a report that shows a leaderboard, and the report of one alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from orbits.runs.page import Picture, Report, Section
from orbits.runs.result import Result
from orbits.runs.untrusted import printable
from symreg.leaderboard import figures, tables, words
from symreg.leaderboard.axes import by_budget
from symreg.leaderboard.row import FORCES, SEARCH, Row, rows

DRAWN = 24
"""Contestants, and controls, that the figures show: a panel of a row takes some 60 kB."""
CONTROLS = "Controls: answers whose law is known"
CAPTIONS = {
    "exponents": "Exponents and constant of each row's predictions: mean over seeds and its "
    "95% interval over trainings; over sequences where there is one. The black line is what a "
    "perfect model has; shaded: within 0.05 of it, as verdicts ask of formulas. Rows of one "
    "label budget stand together. A value beside an arrow lies beyond the scale, which the "
    "contestants set.",
    "spread": "What the searches picked, beside the exponents of the same predictions. The law "
    "picked may change from search to search while the exponents stand still.",
    "residuals": "ln(predicted / true) against each variable: median and 5-95% band of equally "
    "filled bins, one line per model seed, up to ten. Zero is a perfect model.",
    "fronts": "Pareto fronts of each row's searches, up to ten. A dot is the chosen formula; "
    "loss and complexity are each engine's own and do not compare between engines.",
}


TITLE = "What law do the predictions contain?"


def report(results: Sequence[Result], *, drawn: bool = True) -> Report:
    """Return the report of results, with a leaderboard for each law; figures take seconds."""
    kinds = (FORCES, SEARCH)
    worlds = dict.fromkeys(str(x.case.law) for x in results if x.case.kind in kinds)
    sections: list[Section] = []
    said: list[str] = []
    formulas_of: list[Row] = []
    for law in worlds:
        table = rows(results, law)
        said += words.verdict(table, law)
        sections += leaderboard(table, law, drawn=drawn)
        formulas_of += table
        if claims := words.claims(row for row in table if not row.is_control):
            sections.append(Section(f"What may be claimed, {printable(law)}", sentences=claims))
    return Report(
        TITLE,
        sentences=said,
        sections=[
            *sections,
            published(),
            *formulas(formulas_of),
            Section("How to read it", sentences=words.READING),
        ],
    )


def leaderboard(rows: Sequence[Row], law: str, *, drawn: bool = True) -> list[Section]:
    """Return a section per protocol with its contestants, its controls and figures."""
    sections = []
    for protocol, group in groupby(rows, key=lambda row: row.protocol):
        members = list(group)
        title = f"{printable(law)}, protocol {printable(protocol)}"
        parts = {
            "contestants": [row for row in members if not row.is_control],
            "controls": [row for row in members if row.is_control],
        }
        drawn_rows = [row for part in parts.values() for row in part[:DRAWN]]
        headings = {"contestants": title, "controls": CONTROLS}
        sections.append(
            Section(
                title,
                tables=[tables.contestants(headings[n], part) for n, part in parts.items() if part],
                sentences=[
                    words.truth(law),
                    *words.alike(members, law),
                    *(_left_out(parts) if drawn else ()),
                ],
                pictures=list(pictures(drawn_rows, law)) if drawn else (),
                warnings=words.warnings(members),
            )
        )
    return sections


def published() -> Section:
    """Return the section of published results, apart from the measured ones."""
    return Section(tables.PUBLISHED, [tables.printed()])


def formulas(rows: Sequence[Row]) -> list[Section]:
    """Return every search and its formula, a section that is there if there are any."""
    lists = [tables.searches(list(group), law) for law, group in groupby(rows, lambda x: x.law)]
    lists = [table for table in lists if table.rows]
    return [Section("Formulas", lists)] if lists else []


def pictures(rows: Sequence[Row], law: str) -> Iterator[Picture]:
    """Draw rows of one protocol: exponents, formulas that searches picked, residuals, fronts."""
    drawings: Mapping[str, tuple[int, Callable[[Sequence[Row]], bytes | None]]] = {
        "exponents": (24, lambda part: figures.exponents(part, law)),
        "spread": (24, figures.spread),
        "residuals": (6, figures.residuals),
        "fronts": (16, figures.fronts),
    }
    rows = by_budget(rows)
    for name, (size, draw) in drawings.items():  # size: how many rows fit on a page
        parts = (draw(rows[start : start + size]) for start in range(0, len(rows), size))
        if images := [image for image in parts if image is not None]:
            yield Picture(CAPTIONS[name], images)


def _left_out(parts: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return a sentence on the rows that the figures leave out."""
    return [
        f"The figures show the first {DRAWN} of {len(rows)} {name}; the tables have all. "
        "A leaderboard of the others alone draws them."
        for name, rows in parts.items()
        if len(rows) > DRAWN
    ]
