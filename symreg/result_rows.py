"""Result lines -> rows of a leaderboard.

A line is one JSON object: a ``predictor`` line measures a model's force predictions, a ``law``
line is one symbolic search on them. Lines of one protocol, model, arm and label budget make one
row; protocols never share a table. A failed line stays in the denominator.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from symreg.exponents import Interval
from symreg.law_rate import LawRate, law_rate
from symreg.points import NAMES

SCHEMA = 1
CONTROLS = ("control", "untrained + ridge")
METRICS: dict[str, set[str]] = {  # what a table needs of each kind of line; lines carry more
    "pretraining": set(),  # belongs to no row of the leaderboard, nor does the next
    "next point": set(),
    "predictor": {"r2_log", "exponents", "constant"},
    "law": {"verdict", "constant", "shape"},
}
MINIMUM_SEEDS = 3  # model seeds a row needs before anything is claimed from it


@dataclass(frozen=True)
class Row:
    """One row of a leaderboard.

    Attributes:
        task: The benchmark that made the lines.
        protocol: The data protocol; rows of two protocols are never compared.
        model: The model.
        arm: How it was trained; the arms in ``CONTROLS`` stand in their own block.
        labels: The label budget.
        seeds: Number of model seeds that succeeded; 0 where a row has no model.
        failed: Number of predictor lines that failed.
        dropped: Mean share of unusable predictions, which the exponents, the constant, R2 of ln F
            and the fidelity of formulas leave out.
        r2_log: (mean, smallest, largest) R2 of ln force over seeds; None if none succeeded.
        cosine: Likewise, mean cosine between predicted and true force vectors; None without any.
        exponents: For each variable the mean over seeds, and the lowest and highest end of the
            seeds' 95% intervals.
        constant: The fitted constant, likewise.
        law_exponents: The same fit to the true law on the same points: what the exponents of a
            perfect model would be.
        distance: Largest difference between the two in a seed, mean over seeds; infinite if no
            seed has exponents. Errors of two seeds do not cancel in it.
        laws: One entry per engine.
        alike: Laws that the points cannot tell from the true one by its exponents.
    """

    task: str
    protocol: str
    model: str
    arm: str
    labels: str
    seeds: int
    failed: int
    dropped: float
    r2_log: Interval | None
    cosine: Interval | None
    exponents: Mapping[str, Interval]
    constant: Interval | None
    law_exponents: Mapping[str, float]
    distance: float
    laws: tuple[LawRate, ...]
    alike: tuple[str, ...] = ()

    @property
    def is_control(self) -> bool:
        """Whether the row is a control and not a contestant."""
        return self.arm in CONTROLS


def read_lines(path: str | Path) -> list[dict[str, Any]]:
    """Read a file of result lines; blank lines are skipped.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not a result line of this schema; the message gives its number.
    """
    try:
        texts = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file of result lines") from None
    lines = []
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            valid = _is_result(line)
            rows([line])  # whatever a row is made of must have its type
        except (ValueError, KeyError, TypeError, AttributeError):
            valid = False
        if not valid:
            raise ValueError(f"{path}, line {number}: not a result line of schema {SCHEMA}")
        lines.append(line)
    if not lines:
        raise ValueError(f"{path}: no result lines")
    return lines


def rows(lines: Iterable[Mapping[str, Any]], law: str = "newton") -> list[Row]:
    """Group result lines into rows, best first within a protocol.

    Contestants come before controls. They are ranked by the primary metric alone, the distance of
    the exponents from the law's; rows without exponents come last. Law rates do not rank: they
    move with the points drawn and the engine's seed while the exponents stand still.

    Args:
        lines: Result lines, in any order. A cell that occurs twice counts once, the later one.
        law: The true law, a name of :mod:`orbits.laws`.

    Raises:
        ValueError: There is no such law.
    """
    from orbits import laws

    truth = laws.get(law).exponents or {}  # lines without the law's own fit have the law's
    latest = {line["cell"]: line for line in lines if METRICS[line["kind"]]}
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for line in latest.values():
        groups.setdefault(_group(line), []).append(line)
    found = [_row(group, members, truth) for group, members in groups.items()]

    def rank(row: Row) -> tuple[Any, ...]:
        names = row.model, row.arm, row.labels
        return row.task, row.protocol, row.is_control, row.distance, *names

    return sorted(found, key=rank)


def separated(row_a: Row, row_b: Row, metric: str) -> bool:
    """Tell whether two rows' 95% intervals are disjoint, the only basis for "they differ".

    An interval of one model seed says nothing about the next seed, so both rows need
    ``MINIMUM_SEEDS``. The Wilson interval takes searches as independent, though those of one
    model share its predictions: a claim from law rates alone is the weaker one.

    Args:
        row_a: One row.
        row_b: Another row of the same task and protocol.
        metric: ``constant``, a variable's name for its exponent, or ``law@<engine>`` for the
            rate of an engine. R2 has no interval here, so nothing may be claimed from it.

    Returns:
        False also where a row lacks the metric or has too few seeds.

    Raises:
        ValueError: The rows are of two protocols or tasks, or there is no such metric.
    """
    if (row_a.task, row_a.protocol) != (row_b.task, row_b.protocol):
        raise ValueError("rows of different protocols or tasks are not compared")
    one, other = _metric(row_a, metric), _metric(row_b, metric)
    if one is None or other is None or min(row_a.seeds, row_b.seeds) < MINIMUM_SEEDS:
        return False
    return one[0] > other[1] or other[0] > one[1]


def _metric(row: Row, metric: str) -> tuple[float, float] | None:
    if metric.startswith("law@"):
        for entry in row.laws:
            if entry.engine == metric.removeprefix("law@"):
                return entry.low, entry.high
        return None
    if metric in NAMES:
        value = row.exponents.get(metric)
    elif metric == "constant":
        value = row.constant
    else:
        choices = ", ".join((*NAMES, "constant", "law@<engine>"))
        raise ValueError(f"unknown metric {metric!r}; choose from {choices}")
    return None if value is None else value[1:]


def _is_result(line: Mapping[str, Any]) -> bool:
    """Tell whether a line has what a row is made of; missing keys may raise KeyError."""
    if line["schema"] != SCHEMA or line["kind"] not in METRICS or not line["cell"]:
        return False
    if line["status"] == "ok" and not METRICS[line["kind"]] <= set(line["metrics"]):
        return False
    scored = line["metrics"] if line["kind"] == "law" and line["status"] == "ok" else {}
    texts = [line["cell"], *_group(line), *(scored.get(x) for x in ("verdict", "shape") if scored)]
    return (
        line["status"] in ("ok", "failed")
        and all(isinstance(text, str) for text in texts)
        and isinstance(line["row"]["seed"], int | None)
        and all(_is_interval(value) for value in _intervals(line["metrics"]))
    )


def _intervals(metrics: Mapping[str, Any]) -> list[Any]:
    """Return what must be (value, low, high) in a predictor's metrics."""
    exponents = metrics.get("exponents")
    constant = metrics.get("constant") if exponents is not None else None
    return [*(exponents or {}).values(), *([] if constant is None else [constant])]


def _is_interval(value: Any) -> bool:
    numbers = isinstance(value, list) and all(isinstance(x, int | float) for x in value)
    return numbers and len(value) == 3


def _group(line: Mapping[str, Any]) -> tuple[str, ...]:
    row = line["row"]
    return line["task"], row["protocol"], row["model"], row["arm"], str(row["labels"])


def _row(
    group: tuple[str, ...], lines: Sequence[Mapping[str, Any]], truth: Mapping[str, float]
) -> Row:
    predictors = [line for line in lines if line["kind"] == "predictor"]
    metrics = [line["metrics"] for line in predictors if line["status"] == "ok"]
    seeds = {line["row"]["seed"] for line in predictors if line["status"] == "ok"} - {None}
    fits = [entry["exponents"] or {} for entry in metrics]
    constants = [entry["constant"] for entry in metrics if entry["constant"] is not None]
    variables = sorted({name for fit in fits for name in fit})
    targets = [entry.get("law_exponents", truth) for entry in metrics] or [truth]
    truths = set.intersection(*map(set, targets))
    gaps = [
        max(abs(fit[x][0] - target[x]) for x in target)
        for fit, target in zip(fits, targets, strict=False)
        if target and set(target) <= set(fit)
    ]
    searches = [line for line in lines if line["kind"] == "law"]
    engines = sorted({str(line.get("engine")) for line in searches})
    task, protocol, model, arm, labels = group
    return Row(
        task=task,
        protocol=protocol,
        model=model,
        arm=arm,
        labels="-" if labels == "None" else labels,
        seeds=len(seeds),
        failed=sum(line["status"] == "failed" for line in predictors),
        dropped=fmean([entry.get("dropped", 0.0) for entry in metrics] or [0.0]),
        r2_log=_spread([entry["r2_log"] for entry in metrics]),
        cosine=_spread([entry.get("cosine") for entry in metrics]),
        exponents={x: _envelope([fit[x] for fit in fits if x in fit]) for x in variables},
        constant=_envelope(constants) if constants else None,
        law_exponents={x: fmean([target[x] for target in targets]) for x in sorted(truths)},
        distance=fmean(gaps) if gaps else math.inf,
        laws=tuple(
            law_rate(engine, [line for line in searches if str(line.get("engine")) == engine])
            for engine in engines
        ),
        alike=tuple(sorted({law for entry in metrics for law in entry.get("alike", ())})),
    )


def _spread(values: Sequence[float | None]) -> Interval | None:
    """Return the mean, the smallest and the largest of the values that there are."""
    there = [value for value in values if value is not None]
    return (fmean(there), min(there), max(there)) if there else None


def _envelope(intervals: Sequence[Sequence[float]]) -> Interval:
    """Return the mean of the values, the lowest low and the highest high."""
    values, lows, highs = zip(*intervals, strict=True)
    return fmean(values), min(lows), max(highs)
