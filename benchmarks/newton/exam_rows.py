"""The rows of the exam: scores of models and controls outside the training box, best first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from benchmarks.newton.control_names import CAUSAL_CEILING, POWER_LAW, is_table
from orbits import shifts as catalogue
from orbits.runs.result import Metric, Result, grouped
from orbits.runs.statistics import Interval
from symreg.leaderboard.row import CONTROLS, EXAM, mean_over, n_seeds, row_key

BOX = "box"
"""The training box, which stands beside the shifts and is not one of them."""
MEDIAN, MEDIAN_EXAM = "median_log_error", "median_exam"
"""Metrics of a median absolute error of ln F, and of its geometric mean over the shifts."""
MEAN = "mean_log_error"
"""Metric of the mean error of ln F."""
KEPT = 0.1
"""Largest difference of an exponent from the law's inside a shift that counts as kept."""
PASS = 2.0
"""Largest error, in units of the ceiling's, of a passed exam; every exponent must be kept too."""
NO_LABELS = "-"
"""Label budget of rows without labels."""
SUBMITTED = "submission"
"""The arm of models from outside, which were trained elsewhere."""
CAUSAL = "causal ceiling"
"""Unit of all errors: the errors of the row ``ceiling, causal``."""


@dataclass(frozen=True)
class ExamRow:
    """One model or control, over its trainings.

    Attributes:
        variant: The attention, mixer or control.
        arm: Arm: the kind of the training.
        labels: The label budget.
        seeds: Number of trainings, or of fits of a baseline to label sets of their own; 0 where
            there is one of none.
        failed: Number of exams without a result.
        score: Geometric mean over the shifts of ``times``; None where predictions have no
            logarithm. Over three trainings or more the interval is Student's t over their
            logarithms; over fewer, that of the first one over sequences.
        box: Times the ceiling in the training box, likewise.
        times: Times the ceiling in each shift, likewise.
        exponents: The exponent of what was shifted, inside the shift, likewise without logarithms.
        law_exponents: The same of the true force.
        kept: In how many shifts each training keeps the law's exponent, within :data:`KEPT`.
            Errors of two trainings do not cancel in it.
        medians: Median absolute error of ln F in the box and in each shift, not over the
            ceiling's; interval as that of ``score``.
        median_score: Geometric mean of the medians over the shifts, likewise.
        means: Mean error of ln F in the box and in each shift, without logarithms.
        of_systems: The score over the shifts of masses, sizes and shapes alone; of one training
            without its interval.
        of_steps: The same over the shifts of the time step.
    """

    variant: str
    arm: str
    labels: str
    seeds: int
    failed: int
    score: Interval | None
    box: Interval | None
    times: Mapping[str, Interval]
    exponents: Mapping[str, Interval]
    law_exponents: Mapping[str, float]
    kept: Sequence[int] = ()
    medians: Mapping[str, Interval] = field(default_factory=dict)
    median_score: Interval | None = None
    means: Mapping[str, Interval] = field(default_factory=dict)
    of_systems: Interval | None = None
    of_steps: Interval | None = None

    @property
    def is_control(self) -> bool:
        """Whether the row is that of a control and not of a contestant."""
        return self.arm in CONTROLS

    @property
    def passed(self) -> bool:
        """Whether the error is at most :data:`PASS` times the ceiling's and the law is kept.

        It takes both: a spline of the true state errs little where only the time step is another,
        and a regression of logarithms keeps exponents while its errors are large.
        """
        every = len(self.law_exponents)
        near = self.score is not None and self.score.value <= PASS
        return near and every > 0 and bool(self.kept) and all(each == every for each in self.kept)

    @property
    def key(self) -> tuple[str, str, str]:
        """Fields that tell the row from others, the last of :func:`row_key`'s."""
        return self.variant, self.arm, self.labels

    @property
    def name(self) -> str:
        """Name in words."""
        labels = "" if self.labels == NO_LABELS else f"{self.labels} labels"
        arm = "" if self.arm == "control" else self.arm
        return ", ".join(part for part in (self.variant, arm, labels) if part)

    @property
    def trainings(self) -> str:
        """The number of its trainings in words."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.seeds or '-'}{failed}"


@dataclass(frozen=True)
class Exam:
    """The rows of an exam, and those that tables, figures and sentences pick from them.

    Attributes:
        rows: A row for each variant, arm and label budget, contestants first, best first.
        unit: Root mean square error of ln F of the causal ceiling, in the box and in each shift.
    """

    rows: Sequence[ExamRow]
    unit: Mapping[str, Interval] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Result]) -> Exam:
        """Return the exam of some results, of which those of other kinds are left out."""
        exams = [result for result in results if result.case.kind == EXAM]
        of_rows = (result for result in exams if result.case.variant != CAUSAL)
        groups = grouped(of_rows, lambda result: row_key(result.case)[-3:])
        rows = [_row(key, members) for key, members in groups.items()]
        unit = next((_unit(x) for x in exams if x.case.variant == CAUSAL and x.ok), {})
        return cls(sorted(rows, key=lambda row: (row.is_control, _error(row))), unit)

    @cached_property
    def shifts(self) -> list[str]:
        """The names of all shifts: those of the catalogue in its order, then others."""
        found = {name for row in self.rows for name in row.times}
        known = [name for name in catalogue.names() if name in found]
        return [*known, *sorted(found - set(known))]

    @property
    def own(self) -> list[str]:
        """The shifts of a file of one's own, which may lie inside the training box."""
        return [name for name in self.shifts if name not in catalogue.names()]

    @property
    def where(self) -> str:
        """The place of the exam in words, in front of a sentence."""
        return "In the shifts that were asked" if self.own else "Outside its training box"

    @cached_property
    def models(self) -> list[ExamRow]:
        """The contestants that have a score."""
        return [row for row in self.rows if not row.is_control and row.score]

    @cached_property
    def unscored(self) -> list[ExamRow]:
        """The contestants without a score: they failed, or a prediction has no logarithm."""
        return [row for row in self.rows if not row.is_control and not row.score]

    @cached_property
    def tables(self) -> list[ExamRow]:
        """The look-up tables, which are told the true state."""
        return [row for row in self._fitted if is_table(row.variant)]

    @cached_property
    def plain(self) -> list[ExamRow]:
        """The law-free controls that have the inputs of models."""
        others = [row for row in self._fitted if not is_table(row.variant)]
        return [row for row in others if row.variant != POWER_LAW]

    @property
    def _fitted(self) -> list[ExamRow]:
        controls = [row for row in self.rows if row.arm == "control" and row.score]
        return [row for row in controls if row.labels != NO_LABELS]

    @cached_property
    def ceiling(self) -> ExamRow | None:
        """The causal ceiling, the unit of all errors, as a row."""
        return next((row for row in self.rows if row.variant == CAUSAL_CEILING), None)


def _unit(ceiling: Result) -> dict[str, Interval]:
    found = {
        name.partition("@")[2] or BOX: mean_over([metric])
        for name, metric in ceiling.metrics.items()
        if name.partition("@")[0] == "rms_log_error"
    }
    return {place: value for place, value in found.items() if value is not None}


def _error(row: ExamRow) -> float:
    return row.score.value if row.score else math.inf


def _row(key: tuple[str, ...], members: Sequence[Result]) -> ExamRow:
    variant, arm, labels = key
    ok = [result for result in members if result.ok]
    names = dict.fromkeys(name for result in ok for name in result.metrics)

    def over(metric: str, ratios: bool = True) -> Interval | None:
        return mean_over([result.metrics.get(metric) for result in ok], ratios)

    def of_shifts(metric: str, ratios: bool = False) -> dict[str, Interval]:
        found = {
            name.partition("@")[2]: over(name, ratios)
            for name in names
            if name.startswith(f"{metric}@")
        }
        return {name: value for name, value in found.items() if value is not None}

    def with_box(metric: str, ratios: bool) -> dict[str, Interval]:
        box = over(metric, ratios)
        return ({BOX: box} if box else {}) | of_shifts(metric, ratios)

    return ExamRow(
        variant=variant,
        arm=arm,
        labels=labels,
        seeds=n_seeds(ok),
        failed=len(members) - len(ok),
        score=over("exam"),
        box=over("times_ceiling"),
        times=of_shifts("times_ceiling", ratios=True),
        exponents=of_shifts("exponent"),
        kept=[_kept(result) for result in sorted(ok, key=lambda x: x.case.seed or 0)],
        medians=with_box(MEDIAN, ratios=True),
        median_score=over(MEDIAN_EXAM),
        means=with_box(MEAN, ratios=False),
        law_exponents={k: v.value for k, v in of_shifts("law_exponent").items()},
        of_systems=mean_over([_part(x, are_steps=False) for x in ok], ratios=True),
        of_steps=mean_over([_part(x, are_steps=True) for x in ok], ratios=True),
    )


def _part(result: Result, are_steps: bool) -> Metric | None:
    """Return the score of one training over the shifts of systems, or of the time step, alone.

    Lines hold no interval of it. None where shifts of both kinds are not all known.
    """
    prefix = "times_ceiling@"
    known: dict[bool, list[float]] = {}
    for name, metric in result.metrics.items():
        if name.startswith(prefix):
            if (shift := name.removeprefix(prefix)) not in catalogue.names():
                return None
            known.setdefault(bool(catalogue.get(shift).dt_octaves), []).append(metric.value)
    if len(known) < 2 or "exam" not in result.metrics:
        return None
    return Metric(math.prod(known[are_steps]) ** (1 / len(known[are_steps])))


def _kept(result: Result) -> int:
    """Return the number of shifts in which the shifted variable's exponent is the law's."""
    gaps = [
        abs(metric.value - law.value)
        for name, metric in result.metrics.items()
        if name.startswith("exponent@") and (law := result.metrics.get(f"law_{name}")) is not None
    ]
    return sum(gap <= KEPT for gap in gaps)
