"""What our runs say about a published number: reproduced, not reproduced, or not run.

Models, texts and lengths differ, so a loss of ours cannot be that of a paper. What can be asked
is whether a row differs from the table's baseline as the paper says: our difference to the
baseline, paired by seed, has an interval by Student's t over seeds, and its sign is compared with
that of the published difference. Where the paper's digits show no difference, ours must include 0,
which few or scattered seeds do too: read such a verdict with its interval. Each number is judged
alone at 95%; of many that do not differ, one in twenty is said to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from benchmarks.published import Metric, Table
from worldmodel.intervals import MINIMUM_SEEDS, over_seeds

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
NOT_RUN = "not run"

Ours = Mapping[str, Mapping[int, Mapping[str, float]]]
"""Our values: row -> seed -> metric -> value."""


@dataclass(frozen=True)
class Verdict:
    """What is said about one published number.

    Attributes:
        row: Our label of the row.
        metric: The metric.
        outcome: ``reproduced``, ``not reproduced`` or ``not run``.
        reason: Why, in one line.
        interval: Our mean and its two ends, of what was compared: the difference to the baseline
            or, at the paper's scale, the value; None if not run.
    """

    row: str
    metric: str
    outcome: str
    reason: str
    interval: tuple[float, float, float] | None = None


def verdicts(table: Table, ours: Ours, same_scale: bool = False) -> list[Verdict]:
    """Judge every number of a table, printed or derived, row by row; see :func:`verdict`."""
    return [
        verdict(table, row.row, metric.name, ours, same_scale)
        for row in table.rows
        for metric in table.metrics
        if metric.read(row.values) is not None
    ]


def verdict(table: Table, row: str, metric: str, ours: Ours, same_scale: bool = False) -> Verdict:
    """Judge one number.

    Args:
        table: The published table.
        row: A row of it.
        metric: A metric of it; a derived one of ours is derived from the same columns.
        ours: Our values. Rows and seeds that are not there were not run.
        same_scale: Whether ours are runs of the paper's own setting. Then values are compared
            themselves, otherwise differences to the baseline.

    Raises:
        ValueError: The table has no such row, metric or number.
    """
    column = table.metric(metric)
    published, resolution = _published(table, row, column)
    if published is None:
        raise ValueError(f"no {metric} of {row} in {table.table}: the paper prints none")
    samples = _by_seed(ours, row, column)

    def not_run(reason: str) -> Verdict:
        return Verdict(row, metric, NOT_RUN, reason)

    if not samples:
        return not_run("no run of ours")
    if not same_scale:
        if row == table.baseline:
            return not_run("absolute values are not comparable at this scale")
        reference, its_resolution = _published(table, table.baseline, column)
        if reference is None:
            return not_run(f"the paper prints no number of the baseline {table.baseline}")
        references = _by_seed(ours, table.baseline, column)
        if not references:
            return not_run(f"no run of the baseline {table.baseline}")
        published, resolution = published - reference, resolution + its_resolution
        samples = {seed: x - references[seed] for seed, x in samples.items() if seed in references}
    if len(samples) < MINIMUM_SEEDS:
        return not_run(f"{_count(samples)}; an interval needs {MINIMUM_SEEDS}")
    if diverged := [seed for seed, x in samples.items() if not math.isfinite(x)]:
        return not_run(f"not finite in seed {', '.join(map(str, diverged))}: no interval")
    mean, low, high = over_seeds(list(samples.values()))
    compare, sign = (_compare_values, "") if same_scale else (_compare_signs, "+")
    outcome, finding = compare(float(published), float(resolution), low, high)
    reason = (
        f"{finding}: ours {mean:{sign}.4g} [{low:{sign}.4g}, {high:{sign}.4g}] over "
        f"{len(samples)} seeds, the paper's {_text(published, column, sign)}"
    )
    return Verdict(row, metric, outcome, reason, (mean, low, high))


def _published(table: Table, row: str, column: Metric) -> tuple[Decimal | None, Decimal]:
    """Return a published number and how exactly it is known."""
    printed = table.row(row).values
    value = column.read(printed)
    return value, Decimal(0) if value is None else column.resolution(printed)


def _by_seed(ours: Ours, row: str, column: Metric) -> dict[int, float]:
    read = {seed: column.read(values) for seed, values in ours.get(row, {}).items()}
    return {seed: value for seed, value in read.items() if value is not None}


def _text(published: Decimal, column: Metric, sign: str = "") -> str:
    """Return a published number with its printed digits; a ratio has no such digits."""
    return f"{published:{sign}.5g}" if column.op == "ratio" else f"{published:{sign}f}"


def _count(samples: Mapping[int, float]) -> str:
    return {0: "no common seed", 1: "one seed"}.get(len(samples), f"{len(samples)} seeds")


def _compare_values(
    published: float, resolution: float, low: float, high: float
) -> tuple[str, str]:
    if low - resolution <= published <= high + resolution:
        return REPRODUCED, "in our interval"
    return NOT_REPRODUCED, "outside our interval"


def _compare_signs(published: float, resolution: float, low: float, high: float) -> tuple[str, str]:
    ours_is_none = low <= 0 <= high
    if abs(published) < resolution:  # rounding alone can have made its sign
        if ours_is_none:
            return REPRODUCED, "no difference in either"
        return NOT_REPRODUCED, "a difference where the paper shows none"
    if ours_is_none:
        return NOT_REPRODUCED, "no difference shown"
    if (low > 0) == (published > 0):
        return REPRODUCED, "same sign"
    return NOT_REPRODUCED, "opposite"
