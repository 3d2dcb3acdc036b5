"""The exam's part of a report: sentences first, then tables and a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.newton import exam_figures
from benchmarks.newton.control_names import is_observer
from benchmarks.newton.exam_rows import BOX, KEPT, PASS, Exam, ExamRow
from orbits import shifts as catalogue
from orbits.runs.page import Section
from orbits.runs.statistics import Interval
from orbits.runs.table import NOTHING, Column, Table, Value, interval, number

TITLE = "The exam: forces outside the training box"
READING = (
    "Models are trained in one box of masses and orbits, and examined outside it: in each shift "
    "one element of the same test systems is drawn from another range. Every number is a root "
    "mean square error of ln F over that of the causal ceiling, an orbit fitted to what the model "
    "has seen when it answers: 1 is as well as the observations allow. The score is the geometric "
    "mean over the shifts, and rows are ranked by it. Controls on the true state are given more "
    "than a model sees."
)
OWN = "Shifts of a file may lie inside the training box: {}."
ITSELF = "The row called ceiling, causal is that orbit fit itself: what a model could have had."
UNIT_TITLE = "The unit: the causal ceiling's own error of ln F"
UNIT = (
    "The root mean square error of that orbit fit itself, by which all others are divided. Where "
    "it is larger, the same error counts as fewer times the ceiling."
)
MEDIANS_TITLE = "The exam by medians"
MEDIANS = (
    "A root mean square may be that of a few sequences, in which the star moves less than a bin; "
    "the median is that of the others. Rows whose median was not kept have a dash. The ceiling's "
    "median, in the unit, is taken as it is."
)
MEANS_TITLE = "Mean error of ln F"
MEANS = (
    "Of ln F itself, not over the ceiling's; intervals are not of logarithms. It shows what a "
    "wrong time step does to all forces alike. Positive: forces are taken for too large; errors "
    "of both signs cancel. Rows whose mean was not kept are left out."
)
INTERVALS = (
    "Three trainings or more: Student's t over trainings, of logarithms; those of a baseline are "
    "fits to as many sets of labels. Fewer: resampled test sequences of one training, which says "
    "nothing about the next training; a few sequences make most of the error, so that it is "
    "somewhat too narrow."
)


IDENTITY = (
    Column("model", value=lambda row: Value(row.variant, kind="name")),
    Column("arm", value=lambda row: Value(row.arm)),
    Column("labels", value=lambda row: Value(row.labels)),
    Column("trainings", value=lambda row: Value(row.trainings)),
)
"""Columns that tell the rows of every table apart."""


def section(exam: Exam, figures: Path) -> list[Section]:
    """Return the exam's section, if there was an exam."""
    if not exam.rows:
        return []
    tables = [scores(exam), *unit(exam), *medians(exam)]
    if any(row.exponents for row in exam.rows):
        tables.append(exponents(exam))
    if any(row.means for row in exam.rows):
        tables.append(means(exam))
    itself = [ITSELF] if exam.ceiling else []
    own = [OWN.format(", ".join(exam.own))] if exam.own else []
    pictures = exam_figures.pictures(exam, figures)
    return [Section(TITLE, tables, [READING, *own, *itself, INTERVALS], pictures)]


def scores(exam: Exam) -> Table:
    """Return the score of every row, and how each shift went."""

    def times(shift: str) -> Callable[[ExamRow], Value]:
        return lambda row: interval(row.times.get(shift))

    whole = "geometric mean of times the ceiling over the shifts; lower is better."
    inside, note = "times the ceiling in the training box.", "times the ceiling in a shift."
    columns = [
        *IDENTITY,
        Column("exam", whole, value=lambda row: interval(row.score)),
        Column("in the box", inside, value=lambda row: interval(row.box)),
        *_kinds(exam),
        *(Column(shift, note, "shifts", value=times(shift)) for shift in exam.shifts),
    ]
    return Table.of(TITLE, exam.rows, columns)


def unit(exam: Exam) -> list[Table]:
    """Return the causal ceiling's own errors, the unit of all others, where they are known."""
    if not exam.unit:
        return []

    def error(place: str) -> Callable[[Mapping[str, Interval]], Value]:
        return lambda errors: interval(errors.get(place))

    note = "root mean square error of ln F."
    return [Table.of(UNIT_TITLE, [exam.unit], _places(exam, note, "", error), UNIT)]


def _kinds(exam: Exam) -> list[Column]:
    """Return the score over systems and over time steps apart, where there are both."""
    if not any(row.of_systems for row in exam.rows):
        return []
    note = "the exam's mean over the shifts of {} alone; of one training without an interval."
    systems, steps = (note.format(x) for x in ("masses, sizes and shapes", "the time step"))
    return [
        Column("systems", systems, "kinds", value=lambda row: _or_alone(row.of_systems)),
        Column("time steps", steps, "kinds", value=lambda row: _or_alone(row.of_steps)),
    ]


def _or_alone(value: Interval | None) -> Value:
    """Return a score with its interval, or without one where nothing bounds it."""
    if value is None or math.isfinite(value.high):
        return interval(value)
    return number(value.value)


def medians(exam: Exam) -> list[Table]:
    """Return the table of median errors over the causal ceiling's, where both are known."""
    if (ceiling := exam.ceiling) is None or ceiling.median_score is None:
        return []

    def median(place: str) -> Callable[[ExamRow], Value]:
        return lambda row: _over(row.medians.get(place), ceiling.medians.get(place))

    whole = "geometric mean over the shifts of what stands there."
    note = "median absolute error of ln F over the ceiling's median."
    columns = [
        *IDENTITY,
        Column("median exam", whole, value=lambda x: _over(x.median_score, ceiling.median_score)),
        *_places(exam, note, "medians", median),
    ]
    return [Table.of(MEDIANS_TITLE, exam.rows, columns, MEDIANS)]


def _places(
    exam: Exam, note: str, group: str, value: Callable[[str], Callable[[Any], Value]]
) -> list[Column]:
    """Return a column of the box and one of each shift."""
    headings = {"in the box": BOX, **{shift: shift for shift in exam.shifts}}
    return [Column(x, note, group, value=value(place)) for x, place in headings.items()]


def _over(value: Interval | None, ceiling: Interval | None) -> Value:
    """Return a value in units of the ceiling's, which is taken as it is."""
    if value is None or not ceiling or not ceiling.value:
        return NOTHING
    return interval([end / ceiling.value for end in value])


def exponents(exam: Exam) -> Table:
    """Return the exponent of the shifted variable, inside each shift, beside the law's."""

    def exponent(shift: str) -> Callable[[ExamRow], Value]:
        return lambda row: interval(row.exponents.get(shift), ".2f")

    law = {name: row.law_exponents[name] for row in exam.rows for name in row.law_exponents}
    note = "exponent of the shifted variable inside the shift, and the law's on the same points."
    tested = [x for x in exam.shifts if any(x in row.exponents for row in exam.rows)]
    columns = [Column(f"{x} ({law[x]:.3g})", note, value=exponent(x)) for x in tested]
    title = "Exponent of what was shifted, inside the shift"
    return Table.of(title, exam.rows, [*IDENTITY, *columns])


def means(exam: Exam) -> Table:
    """Return the mean error of ln F in the box and in each shift, where it was kept."""

    def mean(place: str) -> Callable[[ExamRow], Value]:
        return lambda row: interval(row.means.get(place))

    columns = [*IDENTITY, *_places(exam, "mean of ln F predicted less ln F.", "means", mean)]
    return Table.of(MEANS_TITLE, [row for row in exam.rows if row.means], columns, MEANS)


def sentences(exam: Exam) -> list[str]:
    """Return the answer of the exam: the best and last model, and what they are beside."""
    why = "since a training failed or a predicted force has no logarithm"
    names = ", ".join(row.name for row in exam.unscored)
    lost = [f"Without a score, {why}: {names}."] if names else []
    if not exam.models:
        return lost
    best, worst = exam.models[0], exam.models[-1]
    found = [
        f"{exam.where} the best model, {best.name}, errs {_words(best.score)} times as "
        f"much as an orbit fit to what it has seen, and in the box {_words(best.box)} times."
    ]
    if worst is not best:
        found.append(f"The last of {len(exam.models)}, {worst.name}: {_words(worst.score)} times.")
    found += lost
    for first in exam.plain[:1]:
        found.append(
            f"Without attention, {first.name}, which sees what models see: "
            f"{_words(first.score)} times."
        )
    for first in exam.tables[:1]:
        found.append(
            f"A look-up table that is told the true state, {first.name}: {_words(first.score)} "
            f"times.{_of_tables(exam)}"
        )
    known = (*exam.tables, *exam.plain)
    rest = [row for row in exam.rows if row.arm == "control" and row not in known]
    groups = {
        "models": exam.models,
        "look-up tables": exam.tables,
        "controls that see what models see": exam.plain,
        "observers by another law": [row for row in rest if is_observer(row.variant)],
        "controls that are given the law": [row for row in rest if not is_observer(row.variant)],
    }
    return [*found, *_passed(groups)]


def _of_tables(exam: Exam) -> str:
    """Return what a reader has to know of a table's score."""
    said = []
    if any(catalogue.get(x).dt_octaves for x in exam.shifts if x not in exam.own):
        said.append("time steps do not touch it")
    if any(row.exponents for row in exam.rows):
        said.append("what it keeps of the law's exponents outside its box is in the table")
    words = "; ".join(said)
    return f" {words[0].upper()}{words[1:]}." if words else ""


def _passed(groups: Mapping[str, Sequence[ExamRow]]) -> list[str]:
    """Return the number of each group that passed, where shifts test an exponent."""
    if not any(row.law_exponents for of in groups.values() for row in of):
        return []
    counts = [f"{sum(x.passed for x in of)} of {len(of)} {who}" for who, of in groups.items() if of]
    return [
        f"The exam is passed with at most {PASS:g} times the error of that orbit fit and every "
        f"exponent within {KEPT:g} of the law's: by {', '.join(counts)}."
    ]


def _words(value: Interval | None) -> str:
    return "an unknown number of" if value is None else interval(value).words
