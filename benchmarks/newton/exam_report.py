"""The exam's part of a report: sentences first, then tables and a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.newton import exam_figures
from benchmarks.newton.control_names import CAUSAL_CEILING, POWER_LAW, is_observer, is_table
from benchmarks.newton.exam_rows import BOX, KEPT, NO_LABELS, PASS, ExamRow, shifts
from orbits.runs.page import Section
from orbits.runs.statistics import Interval
from orbits.runs.table import NOTHING, Column, Table, Value, interval

TITLE = "The exam: forces outside the training box"
READING = (
    "Models are trained in one box of masses and orbits, and examined outside it: in each shift "
    "one element of the same test systems is drawn from another range. Every number is a root "
    "mean square error of ln F over that of the causal ceiling, an orbit fitted to what the model "
    "has seen when it answers: 1 is as well as the observations allow. The score is the geometric "
    "mean over the shifts, and rows are ranked by it. Controls on the true state are given more "
    "than a model sees."
)
ITSELF = "The row called ceiling, causal is that orbit fit itself: what a model could have had."
MEDIANS_TITLE = "The exam by medians"
MEDIANS = (
    "A root mean square may be that of a few sequences, in which the star moves less than a bin; "
    "the median is that of the others. Of 400 test sequences of protocol identifiable under "
    "Newton's law they are 5.0, 7.7 and 1.0% in star_heavier, planet_lighter and closer, and make "
    "65, 75 and 67% of the causal ceiling's squared error. Rows whose median was not kept have a "
    "dash. The ceiling's median, in the unit, is taken as it is."
)
INTERVALS = (
    "Three trainings or more: Student's t over trainings, of logarithms; those of a baseline are "
    "fits to as many sets of labels. Fewer: resampled test sequences of one training, which says "
    "nothing about the next training. A few sequences make most of the error, so that such an "
    "interval is too narrow: for the causal ceiling of protocol identifiable it covers 88% where "
    "it should cover 95%."
)


def section(rows: Sequence[ExamRow], figures: Path) -> list[Section]:
    """Return the exam's section, if there was an exam."""
    if not rows:
        return []
    tables = [scores(rows), *medians(rows)]
    if any(row.exponents for row in rows):
        tables.append(exponents(rows))
    pictures = exam_figures.pictures(rows, baselines(rows), figures)
    itself = [ITSELF] if any(row.variant == CAUSAL_CEILING for row in rows) else []
    return [Section(TITLE, tables, [READING, *itself, INTERVALS], pictures)]


def scores(rows: Sequence[ExamRow]) -> Table:
    """Return the score of every row, and how each shift went."""
    names = shifts(rows)
    columns = [
        *_identity(),
        Column("exam", "geometric mean of times the ceiling over the shifts; lower is better."),
        Column("in the box", "times the ceiling in the training box."),
        *(Column(name, "times the ceiling in a shift.", "shifts") for name in names),
    ]
    body = [
        [
            *_name(row),
            _times(row.score),
            _times(row.box),
            *(_times(row.times.get(x)) for x in names),
        ]
        for row in rows
    ]
    return Table(TITLE, columns, body)


def medians(rows: Sequence[ExamRow]) -> list[Table]:
    """Return the table of median errors over the causal ceiling's, where both are known."""
    ceiling = next(
        (row for row in rows if row.variant == CAUSAL_CEILING and row.median_score),
        None,
    )
    if ceiling is None or ceiling.median_score is None:
        return []
    names = shifts(rows)
    columns = [
        *_identity(),
        Column("median exam", "geometric mean over the shifts of what stands there."),
        *(
            Column(name, "median absolute error of ln F over the ceiling's median.", "medians")
            for name in ("in the box", *names)
        ),
    ]
    body = [
        [
            *_name(row),
            _over(row.median_score, ceiling.median_score),
            *(_over(row.medians.get(x), ceiling.medians.get(x)) for x in (BOX, *names)),
        ]
        for row in rows
    ]
    return [Table(MEDIANS_TITLE, columns, body, MEDIANS)]


def _over(value: Interval | None, ceiling: Interval | None) -> Value:
    """Return a value in units of the ceiling's, which is taken as it is."""
    if value is None or not ceiling or not ceiling.value:
        return NOTHING
    return _times(Interval(*(end / ceiling.value for end in value)))


def exponents(rows: Sequence[ExamRow]) -> Table:
    """Return the exponent of the shifted variable, inside each shift, beside the law's."""
    names = [x for x in shifts(rows) if any(x in row.exponents for row in rows)]
    law = {name: row.law_exponents[name] for row in rows for name in row.law_exponents}
    note = "exponent of the shifted variable inside the shift, and the law's on the same points."
    columns = [*_identity(), *(Column(f"{x} ({law[x]:.3g})", note) for x in names)]
    body = [[*_name(row), *(interval(row.exponents.get(x), ".2f") for x in names)] for row in rows]
    return Table("Exponent of what was shifted, inside the shift", columns, body)


def sentences(rows: Sequence[ExamRow]) -> list[str]:
    """Return the answer of the exam: the best and last model, and what they are beside."""
    models = [row for row in rows if not row.is_control and row.score]
    if not models:
        return []
    best = models[0]
    found = [
        f"Outside its training box the best model, {best.name}, errs {_words(best.score)} times as "
        f"much as an orbit fit to what it has seen, and in the box {_words(best.box)} times."
    ]
    worst = models[-1]
    if worst is not best:
        found.append(f"The last of {len(models)}, {worst.name}: {_words(worst.score)} times.")
    told, others = baselines(rows)
    if others:
        found.append(
            f"Without attention, {others[0].name}, which sees what models see: "
            f"{_words(others[0].score)} times."
        )
    if told:
        found.append(
            f"A look-up table that is told the true state, {told[0].name}: {_words(told[0].score)} "
            "times. Time steps do not touch it; what it keeps of the law's exponents outside its "
            "box is in the table."
        )
    rest = [row for row in rows if row.arm == "control" and row not in (*told, *others)]
    believers = [row for row in rest if is_observer(row.variant)]
    groups = {
        "models": models,
        "look-up tables": told,
        "controls that see what models see": others,
        "observers by another law": believers,
        "controls that are given the law": [row for row in rest if row not in believers],
    }
    return [*found, *_passed(groups)]


def _passed(groups: Mapping[str, Sequence[ExamRow]]) -> list[str]:
    """Return the number of each group that passed, where shifts test an exponent."""
    if not any(row.law_exponents for of in groups.values() for row in of):
        return []
    counts = [f"{sum(x.passed for x in of)} of {len(of)} {who}" for who, of in groups.items() if of]
    return [
        f"The exam is passed with at most {PASS:g} times the error of that orbit fit and every "
        f"exponent within {KEPT:g} of the law's: by {', '.join(counts)}."
    ]


def baselines(rows: Sequence[ExamRow]) -> tuple[list[ExamRow], list[ExamRow]]:
    """Return law-free controls: look-up tables of the true state, and others on models' inputs."""
    controls = [row for row in rows if row.arm == "control" and row.score]
    fitted = [row for row in controls if row.labels not in NO_LABELS]
    told = [row for row in fitted if is_table(row.variant)]
    return told, [row for row in fitted if row not in told and row.variant != POWER_LAW]


def _identity() -> list[Column]:
    return [Column("model"), Column("arm"), Column("labels"), Column("trainings")]


def _name(row: ExamRow) -> list[Value]:
    labels = NOTHING if row.labels in NO_LABELS else Value(row.labels)
    return [Value(row.variant, kind="name"), Value(row.arm), labels, Value(row.trainings)]


def _times(value: Interval | None) -> Value:
    return NOTHING if value is None else interval(value, ".3g")


def _words(value: Interval | None) -> str:
    if value is None:
        return "an unknown number of"
    shown = interval(value, ".3g")
    return f"{shown.text} {shown.detail}".strip()
