"""The headline table: one row per model, in seven columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from benchmarks.newton.exam_rows import KEPT, SUBMITTED, ExamRow, row_key
from orbits.runs.result import Result, grouped
from orbits.runs.table import NOTHING, Column, Table, Value, interval
from symreg.leaderboard import Row
from symreg.leaderboard.rate import STRICT, is_strict

TITLE = "Who knows the force outside the training box?"
IN_THE_BOX = "Whose predictions are the law's inside the training box?"
FORMULAS = Column(
    "formulas in the box",
    "symbolic searches on predictions in the box whose exponents "
    f"are within 0.05 / {STRICT} of the law's / that are symbolically the law, of all; "
    "they describe predictions, which a look-up table makes too",
)


def headline(rows: Sequence[ExamRow], results: Iterable[Result]) -> Table:
    """Return the exam, the errors in the box and the formulas of every row, best first."""
    searches = _by_row(results)
    columns = [
        Column("model"),
        Column("trained"),
        Column("labels", "labelled sequences"),
        Column("exam", "errors of ln F outside the training box over the causal ceiling's, "
               "geometric mean over the shifts; lower is better"),
        Column("in the box", "the same over test sequences like those of training"),
        Column("exponents kept", "shifts in which the exponent of what was shifted is within "
               f"{KEPT:g} of the law's, of those that test one; each training. A table has those "
               "of its edge there"),
        FORMULAS,
    ]  # fmt: skip
    body = [
        [
            Value(row.variant, kind="name"),
            Value(_trained(row)),
            NOTHING if row.labels in ("-", "None") else Value(row.labels),
            NOTHING if row.score is None else interval(row.score, ".3g"),
            NOTHING if row.box is None else interval(row.box, ".3g"),
            _kept(row),
            _formulas(searches.get((row.variant, row.arm, row.labels), [])),
        ]
        for row in rows
    ]
    return Table(TITLE, columns, body)


def in_the_box(rows: Sequence[Row], results: Iterable[Result]) -> Table:
    """Return the exponents of the predictions and the formulas of every row, in the rows' order.

    For runs without an exam: these numbers are no evidence of a law, and the title says so.
    """
    searches = _by_row(results)
    exponents = tuple(dict.fromkeys(name for row in rows for name in row.exponents))
    columns = [
        Column("model"),
        Column("trained"),
        Column("labels", "labelled sequences"),
        *(
            Column(f"exponent of {name}", "of a power law fitted to the predictions in the box")
            for name in exponents
        ),
        FORMULAS,
    ]
    body = [
        [
            Value(row.model, kind="name"),
            Value("control" if row.arm == "control" else f"{row.arm}, {row.seeds}"),
            NOTHING if row.labels in ("-", "None") else Value(row.labels),
            *(interval(row.exponents.get(name)) for name in exponents),
            _formulas(searches.get((row.model, row.arm, row.labels), [])),
        ]
        for row in rows
    ]
    return Table(IN_THE_BOX, columns, body)


def _trained(row: ExamRow) -> str:
    """Return the kind and number of a row's trainings; a baseline is fitted to sets of labels."""
    if row.arm == SUBMITTED:
        return "elsewhere, submitted"
    if row.arm != "control":
        return f"{row.arm}, {row.trainings}"
    return f"control, {row.trainings} label sets" if row.seeds else "control"


def _kept(row: ExamRow) -> Value:
    """Return in how many shifts each training of a row keeps the law's exponent."""
    if not row.law_exponents:
        return NOTHING
    each = ", ".join(map(str, row.kept))
    return Value(f"{each} of {len(row.law_exponents)}", order=fmean(row.kept))


def _by_row(results: Iterable[Result]) -> dict[tuple[str, str, str], list[Result]]:
    return grouped((result for result in results if result.case.kind == "search"), row_key)


def _formulas(searches: Sequence[Result]) -> Value:
    if not searches:
        return NOTHING
    within = [search for search in searches if search.details.get("verdict") == "law"]
    strict = [search for search in within if is_strict(search)]
    exact = [search for search in within if search.details.get("symbolic") == "yes"]
    text = f"{len(within)} / {len(strict)} / {len(exact)} of {len(searches)}"
    return Value(text, order=len(within) / len(searches))
