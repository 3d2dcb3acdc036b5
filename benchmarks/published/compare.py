"""Verdicts on published numbers by our runs.

Models, texts and lengths differ, so a loss of ours cannot be that of a paper. What can be asked
is whether a row differs from the table's baseline as the paper says: our difference to the
baseline, paired by seed, has an interval by Student's t over seeds.

- Where the paper shows a difference, ours has the ``same direction`` if the interval lies on that
  side of 0, and the paper is ``contradicted`` if it lies on the other.
- Where the paper shows none, by its digits or in its words, ours is ``equivalent`` if the interval
  lies within a margin around 0, and the paper is contradicted if it lies beyond. The margin is the
  column's, or half of the smallest difference that the paper does show in the column. At the
  paper's own scale values themselves are compared, by the same margin.
- All else is ``inconclusive``: our seeds are too few or scatter too much to say. What has no such
  interval is ``not run``.

Each number is judged alone at 95%; of many that do not differ, one in twenty is said to.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from benchmarks.published.tables import PublishedColumn, PublishedTable
from orbits.runs.statistics import MINIMUM_SEEDS, over_seeds

SAME_DIRECTION = "same direction"
EQUIVALENT = "equivalent"
CONTRADICTED = "contradicted"
INCONCLUSIVE = "inconclusive"
NOT_RUN = "not run"
ABSOLUTE = "absolute values of another size or machine are not compared"
"""The reason that a baseline itself has no verdict."""
OUTCOMES = (SAME_DIRECTION, EQUIVALENT, CONTRADICTED, INCONCLUSIVE, NOT_RUN)

Ours = Mapping[str, Mapping[int | None, Mapping[str, float]]]
"""Our values: row -> seed, None where nothing was trained -> metric -> value."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one published number.

    Attributes:
        row: Our label of the row.
        metric: The metric.
        outcome: One of :data:`OUTCOMES`.
        reason: The reason, in one line.
        interval: Our mean and the ends of its interval: of the difference to the baseline or, at
            the paper's scale, of the value; None if not run.
    """

    row: str
    metric: str
    outcome: str
    reason: str
    interval: tuple[float, float, float] | None = None


def verdicts(table: PublishedTable, ours: Ours, same_scale: bool = False) -> list[Verdict]:
    """Judge every number of a table, printed or derived, row by row; see :func:`verdict`."""
    return [
        verdict(table, row.row, metric.name, ours, same_scale)
        for row in table.rows
        for metric in table.metrics
        if metric.read(row.values) is not None
    ]


def distinct(judged: Sequence[Verdict], ours: Mapping[str, str]) -> list[Verdict]:
    """Return the verdicts without those that one number of ours has given before.

    Args:
        judged: Verdicts of a table.
        ours: Our measure for a metric of the table, where several metrics have the same one; any
            other metric is its own.
    """
    first: dict[tuple[str, str, str], Verdict] = {}
    for each in judged:
        first.setdefault((each.row, ours.get(each.metric, each.metric), each.outcome), each)
    return list(first.values())


def counts(judged: Sequence[Verdict]) -> str:
    """Return the number of verdicts with each outcome, in words."""
    found = Counter(verdict.outcome for verdict in judged)
    return ", ".join(f"{found[outcome]} {outcome}" for outcome in OUTCOMES if found[outcome])


def verdict(
    table: PublishedTable, row: str, metric: str, ours: Ours, same_scale: bool = False
) -> Verdict:
    """Judge one number.

    Args:
        table: The published table.
        row: A row of it.
        metric: A metric of it; a derived one of ours is derived from the same columns.
        ours: Our values. Rows and seeds that are not there were not run.
        same_scale: Whether ours are runs of the paper's own setting. Then values are compared
            themselves, otherwise differences to the baseline.
    """
    column = table.metric(metric)
    published = column.read(table.row(row).values)
    if published is None:
        raise ValueError(f"no {metric} of {row} in {table.table}: the paper prints none")
    samples = _by_seed(ours, row, column)

    def not_run(reason: str) -> Verdict:
        return Verdict(row, metric, NOT_RUN, reason)

    if not samples:
        return not_run("no run of ours")
    if not same_scale:
        if row == table.baseline:
            return not_run(ABSOLUTE)
        difference = table.difference(row, column)
        if difference is None:
            return not_run(f"the paper prints no number of the baseline {table.baseline}")
        references = _by_seed(ours, table.baseline, column)
        if not references:
            return not_run(f"no run of the baseline {table.baseline}")
        published, _ = difference
        samples = {seed: x - references[seed] for seed, x in samples.items() if seed in references}
    if len(samples) < MINIMUM_SEEDS:
        return not_run(f"{_count(samples)}; an interval needs {MINIMUM_SEEDS}")
    if diverged := [seed for seed, x in samples.items() if not math.isfinite(x)]:
        return not_run(f"not finite in seed {', '.join(map(str, diverged))}: no interval")
    mean, low, high = over_seeds(list(samples.values()))
    sign = "" if same_scale else "+"
    reason = (
        f"ours {mean:{sign}.4g} [{low:{sign}.4g}, {high:{sign}.4g}] over {len(samples)} seeds, "
        f"the paper's {_text(published, column, sign)}"
    )
    if not same_scale and not table.is_equal(row, column):
        return Verdict(row, metric, _compare_signs(published, low, high), reason, (mean, low, high))
    margin = _margin(table, row, column, same_scale)
    centre = float(published) if same_scale else 0.0
    outcome = _compare_with_margin(low - centre, high - centre, margin)
    what = "the paper's value" if same_scale else "no difference"
    reason += "; no margin is known" if margin is None else f"; within {margin:.3g} is {what}"
    return Verdict(row, metric, outcome, reason, (mean, low, high))


def _margin(
    table: PublishedTable, row: str, column: PublishedColumn, same_scale: bool
) -> float | None:
    """Return the allowed distance of our value from the paper's; roundings add to the margin."""
    margin = table.margin(column)
    if margin is None:
        return None
    return float(margin + column.resolution(table.row(row).values) if same_scale else margin)


def _by_seed(ours: Ours, row: str, column: PublishedColumn) -> dict[int | None, float]:
    read = {seed: column.read(values) for seed, values in ours.get(row, {}).items()}
    return {seed: value for seed, value in read.items() if value is not None}


def _text(published: Decimal, column: PublishedColumn, sign: str = "") -> str:
    """Return a published number with its printed digits; a ratio has no such digits."""
    return f"{published:{sign}.5g}" if column.op == "ratio" else f"{published:{sign}f}"


def _count(samples: Mapping[int | None, float]) -> str:
    return {0: "no common seed", 1: "one seed"}.get(len(samples), f"{len(samples)} seeds")


def _compare_signs(published: Decimal, low: float, high: float) -> str:
    if low <= 0 <= high:
        return INCONCLUSIVE
    return SAME_DIRECTION if (low > 0) == (published > 0) else CONTRADICTED


def _compare_with_margin(low: float, high: float, margin: float | None) -> str:
    """Judge an interval that should be of 0, by two one-sided tests against the margin."""
    if margin is None:
        return INCONCLUSIVE
    if -margin <= low and high <= margin:
        return EQUIVALENT
    return CONTRADICTED if low > margin or high < -margin else INCONCLUSIVE
