"""The rows of a leaderboard, from results.

A result of the kind :data:`FORCES` measures a model's force predictions, one of the kind
:data:`SEARCH` is a symbolic search on them. Those of one protocol, variant, arm and label budget
make one row; protocols never share a table. A failed result stays in the denominator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from orbits import laws
from orbits.runs.result import Case, Metric, Result, is_too_large
from orbits.runs.statistics import MINIMUM_SEEDS, Interval, over_seeds
from symreg.formula.thresholds import SHARE_DESCRIBED
from symreg.leaderboard.rate import LawRate, law_rate
from symreg.points import NAMES

FORCES, SEARCH, EXAM = "forces", "search", "exam"
CONTROLS = ("control", "untrained + ridge")
BANDS = ("centre", "low", "median", "high")
"""Numbers of each bin in the details of a row's residuals."""


@dataclass(frozen=True)
class Row:
    """One row of a leaderboard.

    Attributes:
        law: The law of the world.
        protocol: The data protocol; rows of two protocols are never compared.
        model: The model, or the control.
        arm: Kind of the training; the arms in ``CONTROLS`` stand in their own block.
        labels: The label budget.
        seeds: Number of model seeds, or of label sets of a baseline, that succeeded; 0 where
            nothing was trained more than once.
        failed: Number of models whose forces could not be measured.
        dropped: Mean share of unusable predictions, which the exponents, the constant, R2 of ln F
            and the fidelity of formulas leave out.
        r2_log: R2 of ln force, mean over seeds; None if none succeeded.
        exponents: For each variable the mean over seeds and its interval, as
            :data:`orbits.runs.statistics.CONVENTION` has it; that of two seeds bounds nothing.
        constant: The fitted constant, likewise.
        values: The values of each metric by seed; of a control by None.
        law_exponents: The same fit to the true law on the same points: what the exponents of a
            perfect model would be.
        distance: Largest difference between the two in a seed, mean over seeds; infinite if no
            seed has exponents. Errors of two seeds do not cancel in it.
        laws: One entry per engine.
        alike: Laws that the points cannot tell from the true one by its exponents.
        exam: The score outside the training box, see :mod:`benchmarks.newton.exam`; over several
            trainings of its logarithm. None where a row, or one of its trainings, has no score.
        results: The results that it is made of, failed ones included.
    """

    law: str
    protocol: str
    model: str
    arm: str
    labels: str
    seeds: int
    failed: int
    dropped: float
    r2_log: float | None
    exponents: Mapping[str, Interval]
    constant: Interval | None
    values: Mapping[str, Mapping[int | None, float]]
    law_exponents: Mapping[str, float]
    distance: float
    laws: tuple[LawRate, ...]
    alike: tuple[str, ...] = ()
    exam: Interval | None = None
    results: Sequence[Result] = field(default=(), compare=False, repr=False)

    @property
    def is_control(self) -> bool:
        """Whether the row is a control and not a contestant."""
        return self.arm in CONTROLS

    @property
    def key(self) -> tuple[str, ...]:
        """Fields that tell the row from others, see :func:`row_key`."""
        return self.law, self.protocol, self.model, self.arm, self.labels

    def of_kind(self, kind: str) -> list[Result]:
        """Return its results of a kind, failed ones included."""
        return [result for result in self.results if result.case.kind == kind]


def row_key(case: Case) -> tuple[str, ...]:
    """Return the law, protocol, variant, arm and label budget by which results make rows."""
    labels = case.get("labels")
    named = str(case.law), str(case.protocol), case.variant, case.arm
    return *named, "-" if labels is None else str(labels)


def measured(results: Iterable[Result], law: str) -> list[Result]:
    """Return the results that rows of a law are made of; a cell that occurs twice counts once."""
    latest = {
        (result.cell, result.case.kind, result.case.seed, *row_key(result.case)): result
        for result in results
        if result.case.kind in (FORCES, SEARCH, EXAM) and result.case.law == law
    }
    return list(latest.values())


def rows(results: Iterable[Result], law: str = "newton") -> list[Row]:
    """Group results into rows, best first within a protocol.

    Contestants come before controls. They are ranked by the exam outside the training box; those
    that were not examined come next, by the distance of the exponents from the law's, and those
    without exponents after them. Rows that leave out so many predictions that the rest is no
    description come last, whatever their score. Law rates do not rank: they move with the points
    drawn and the engine's seed while the exponents stand still.

    Args:
        results: Results in any order; those of other kinds and other laws are left out. A cell
            that occurs twice counts once, the later one.
        law: The law of the world, a name of :mod:`orbits.laws`.
    """
    truth = laws.get(law).exponents or {}  # results without the law's own fit have the law's
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in measured(results, law):
        check(result)
        groups.setdefault(row_key(result.case), []).append(result)
    found = [
        _row(group, members, truth)
        for group, members in groups.items()
        if any(member.case.kind != EXAM for member in members)
    ]

    def rank(row: Row) -> tuple[Any, ...]:
        exam = row.exam.value if row.exam else math.inf
        silent = row.dropped > 1 - SHARE_DESCRIBED
        ranked = silent, exam, row.distance
        return row.protocol, row.is_control, *ranked, row.model, row.arm, row.labels

    return sorted(found, key=rank)


def check(result: Result) -> None:
    """Refuse a successful search without a verdict or a shape, and details of other types."""
    named = ("verdict", "shape") if result.ok and result.case.kind == SEARCH else ()
    for name in named:
        if not isinstance(value := result.details.get(name), str):
            raise ValueError(f"{result.case.label:.200}: {name} must be text, got {value!r:.80}")
    for name in ("symbolic", "expression"):
        if not isinstance(value := result.details.get(name, ""), str | None):
            raise ValueError(f"{result.case.label:.200}: {name} must be text, got {value!r:.80}")
    for name, is_drawable in (("front", _is_front), ("residuals", _are_residuals)):
        if not is_drawable(value := result.details.get(name)):
            raise ValueError(f"{result.case.label:.200}: {name} cannot be drawn: {value!r:.80}")
    for name in ("laws", "alike"):
        value = result.details.get(name, [])
        if not isinstance(value, list | tuple) or not all(isinstance(x, str) for x in value):
            raise ValueError(f"{result.case.label:.200}: {name} must be names, got {value!r:.80}")


def _is_front(value: object) -> bool:
    """Tell whether a detail is a front of formulas, or nothing."""
    return value is None or (
        isinstance(value, list | tuple)
        and all(
            isinstance(each, Mapping)
            and isinstance(each.get("expression"), str)
            and _are_numbers([each.get("loss"), each.get("complexity")])
            for each in value
        )
    )


def _are_residuals(value: object) -> bool:
    """Tell whether a detail is bins of residuals by variable, or nothing."""
    return value is None or (
        isinstance(value, Mapping)
        and all(
            isinstance(bins, Mapping)
            and all(_are_numbers(bins.get(name)) for name in BANDS)
            and len({len(bins[name]) for name in BANDS}) == 1
            for bins in value.values()
        )
    )


def _are_numbers(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        type(each) in (int, float) and not is_too_large(each) for each in value
    )


def values_by_seed(results: Iterable[Result]) -> dict[str, dict[int | None, float]]:
    """Return the values of each metric of a row's results by seed; of a control by None."""
    found: dict[str, dict[int | None, float]] = {}
    for result in results:
        for name, metric in result.metrics.items():
            found.setdefault(name, {})[result.case.seed] = metric.value
    return found


def _row(group: tuple[str, ...], members: Sequence[Result], truth: Mapping[str, float]) -> Row:
    forces = [result for result in members if result.case.kind == FORCES]
    searches = [result for result in members if result.case.kind == SEARCH]
    examined = [result for result in members if result.case.kind == EXAM]
    ok = [result for result in forces if result.ok]
    fits = [_exponents(result) for result in ok]
    constants = [fit for result in ok if (fit := _interval(result, "constant")) is not None]
    targets = [_law_exponents(result) or truth for result in ok] or [truth]
    gaps = [
        max(abs(fit[x].value - target[x]) for x in target)
        for fit, target in zip(fits, targets, strict=False)
        if target and set(target) <= set(fit)
    ]
    known = [value for result in ok if (value := result.value("r2_log")) is not None]
    engines = sorted({str(search.case.get("engine")) for search in searches})
    law, protocol, model, arm, labels = group
    return Row(
        law=law,
        protocol=protocol,
        model=model,
        arm=arm,
        labels=labels,
        seeds=n_seeds(ok),
        failed=len(forces) - len(ok),
        dropped=fmean([result.value("dropped") or 0.0 for result in ok] or [0.0]),
        r2_log=fmean(known) if known else None,
        exponents={
            x: _over_trainings([fit[x] for fit in fits if x in fit])
            for x in sorted({name for fit in fits for name in fit})
        },
        constant=_over_trainings(constants) if constants else None,
        values=values_by_seed([*ok, *(x for x in examined if x.ok)]),
        law_exponents={
            x: fmean([target[x] for target in targets])
            for x in sorted(set.intersection(*map(set, targets)))
        },
        distance=fmean(gaps) if gaps else math.inf,
        laws=tuple(
            law_rate(engine, [x for x in searches if str(x.case.get("engine")) == engine])
            for engine in engines
        ),
        alike=tuple(sorted({law for result in ok for law in result.details.get("alike", ())})),
        exam=mean_over([result.metrics.get("exam") for result in examined], ratios=True),
        results=members,
    )


def n_seeds(results: Iterable[Result]) -> int:
    """Return the number of trainings; 0 where nothing has a seed. None is a control's first."""
    seeds = {result.case.seed for result in results}
    return len(seeds) if seeds - {None} else 0


def mean_over(metrics: Sequence[Metric | None], ratios: bool = False) -> Interval | None:
    """Return the mean of a metric over trainings with its interval by Student's t.

    Args:
        metrics: One per training; None where it has none.
        ratios: Take the geometric mean; zeros, which have no logarithm, are averaged as they are.

    Returns:
        None where a training has no number; of one training its own interval over sequences; two
        bound nothing.
    """
    there = [metric for metric in metrics if metric is not None]
    if not there or len(there) < len(metrics):
        return None
    if len(there) == 1:
        return Interval(*(there[0].interval or (there[0].value, -math.inf, math.inf)))
    values = [metric.value for metric in there]
    geometric = ratios and min(values) > 0
    values = [math.log(value) for value in values] if geometric else values
    few = len(values) < MINIMUM_SEEDS
    ends = Interval(fmean(values), -math.inf, math.inf) if few else over_seeds(values)
    return Interval(*map(math.exp, ends)) if geometric else ends


def _exponents(result: Result) -> dict[str, Interval]:
    fits = {name: _interval(result, f"exponent_{name}") for name in NAMES}
    return {name: fit for name, fit in fits.items() if fit is not None}


def _law_exponents(result: Result) -> dict[str, float]:
    values = {name: result.value(f"law_exponent_{name}") for name in NAMES}
    return {name: value for name, value in values.items() if value is not None}


def _interval(result: Result, metric: str) -> Interval | None:
    """Return a metric with its ends, which bound nothing where it has none."""
    if (found := result.metrics.get(metric)) is None:
        return None
    return Interval(*(found.interval or (found.value, -math.inf, math.inf)))


def _over_trainings(intervals: Sequence[Interval]) -> Interval:
    """Return the interval of a row from those of its results over sequences.

    Too few sequences leave a row without an interval, however many trainings there are.
    """
    if len(intervals) == 1:
        return intervals[0]
    values = [each.value for each in intervals]
    bounded = all(math.isfinite(end) for each in intervals for end in each)
    if bounded and len(values) >= MINIMUM_SEEDS:
        return over_seeds(values)
    return Interval(fmean(values), -math.inf, math.inf)
