"""The headline table: one row per model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from benchmarks.newton.exam_rows import KEPT, PASS, SUBMITTED, ExamRow
from orbits.runs.table import NOTHING, Column, Table, Value, interval
from symreg.leaderboard import LawRate, Row
from symreg.leaderboard.rate import STRICT

TITLE = "Who knows the force outside the training box?"
IN_THE_BOX = "Whose predictions are the law's inside the training box?"
FORMULAS = (
    "formulas in the box",
    "symbolic searches on predictions in the box whose exponents "
    f"are within 0.05 / {STRICT} of the law's / that are symbolically the law, of all; "
    "they describe predictions, which a look-up table makes too",
)
OF_SHIFTS = (
    "exponents kept",
    f"shifts in which the exponent of what was shifted is within {KEPT:g} of the law's, of those "
    "that test one; each training. A table has those of its edge there",
)
PASSED = (
    "passed",
    f"whether the exam is at most {PASS:g} and every training keeps every exponent: a table may "
    "err little in some shifts and lose the exponents of others",
)


def headline(rows: Sequence[ExamRow], searched: Sequence[Row]) -> Table:
    """Return the exam, the errors in the box and the formulas of every row, in the rows' order.

    Args:
        rows: The rows of an exam.
        searched: Rows of a leaderboard, with the formulas of their searches.
    """
    laws = {row.key[-3:]: row.laws for row in searched}
    outside = "errors of ln F outside the training box over the causal ceiling's, geometric mean "
    outside += "over the shifts; lower is better"
    inside = "the same over test sequences like those of training"
    columns = [
        Column("model", value=lambda row: Value(row.variant, kind="name")),
        Column("trained", value=lambda row: Value(_trained(row))),
        LABELS,
        Column("exam", outside, value=lambda row: interval(row.score)),
        Column(*PASSED, value=_passed),
        Column("in the box", inside, value=lambda row: interval(row.box)),
        Column(*OF_SHIFTS, value=_kept),
        Column(*FORMULAS, value=lambda row: _formulas(laws.get(row.key, ()))),
    ]
    return Table.of(TITLE, rows, columns)


def in_the_box(rows: Sequence[Row]) -> Table:
    """Return the exponents of the predictions and the formulas of every row, in the rows' order.

    For runs without an exam: these numbers are no evidence of a law, and the title says so.
    """

    def trained(row: Row) -> Value:
        return Value("control" if row.arm == "control" else f"{row.arm}, {row.seeds}")

    def exponent(name: str) -> Callable[[Row], Value]:
        return lambda row: interval(row.exponents.get(name))

    note = "of a power law fitted to the predictions in the box"
    exponents = dict.fromkeys(name for row in rows for name in row.exponents)
    columns = [
        Column("model", value=lambda row: Value(row.model, kind="name")),
        Column("trained", value=trained),
        LABELS,
        *(Column(f"exponent of {name}", note, value=exponent(name)) for name in exponents),
        Column(*FORMULAS, value=lambda row: _formulas(row.laws)),
    ]
    return Table.of(IN_THE_BOX, rows, columns)


LABELS = Column("labels", "labelled sequences", value=lambda row: Value(row.labels))


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


def _passed(row: ExamRow) -> Value:
    if not row.law_exponents or row.score is None:
        return NOTHING
    return Value("yes" if row.passed else "no", order=float(row.passed))


def _formulas(engines: Sequence[LawRate]) -> Value:
    """Return how many searches of all engines found the law, at three strengths."""
    if not (total := sum(each.total for each in engines)):
        return NOTHING
    found = sum(each.found for each in engines)
    strict = [each.strict for each in engines if each.strict is not None]
    # Results of earlier versions were not asked for the stricter threshold.
    within = sum(strict) if len(strict) == len(engines) else "-"
    exact = sum(each.symbolic for each in engines)
    return Value(f"{found} / {within} / {exact} of {total}", order=found / total)
