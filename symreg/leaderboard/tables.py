"""Tables of a leaderboard: the value and the meaning of each column."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from orbits.runs.table import NOTHING, Column, Table, Value, interval, mean_over_seeds, number
from orbits.runs.untrusted import printable
from symreg.formula.thresholds import MINIMUM_R2_LOG, VERDICTS
from symreg.leaderboard import published
from symreg.leaderboard.quantities import FORCES
from symreg.leaderboard.rate import LawRate
from symreg.leaderboard.row import SEARCH, Row
from symreg.points import NAMES

PUBLISHED = "Published, not measured here"
PUBLISHED_NOTE = (
    "Under the paper's protocol and Newton's law: rows of another protocol or law do not compare "
    "with them. Printed rows have no interval and no number of seeds, so they are not ranked among "
    "the measured ones."
)
OWN = "measured on the predictions: what may be claimed"
FORMULAS = "formulas that symbolic searches found on these predictions"
LEAVING = ("error outside", "R2 of ln F", "constant", "shape", "seeds")
"""Columns that a narrow terminal drops, in this order."""
TERMINAL = ("model", "arm", "labels", "exam", *NAMES, "engine", "within 0.05", *LEAVING)
"""Columns that a terminal has."""


def contestants(title: str, rows: Sequence[Row]) -> Table:
    """Return a table of rows in order, one line per row and engine."""
    place = (
        "by the exam outside the training box, where there was one; then by the distance of the "
        "exponents from the law's. Overlapping intervals do not rank."
    )
    measures = (EXAM, *MEASURES) if any(row.exam for row in rows) else MEASURES
    body = [
        [
            Value(str(rank), order=rank),
            *(column.value(row) for column in (*IDENTITY, *measures)),
            *(NOTHING if entry is None else column.value(entry) for column in ENGINE),
        ]
        for rank, row in enumerate(rows, start=1)
        for entry in row.laws or [None]
    ]
    return Table(title, [Column("#", place, wide=True), *IDENTITY, *measures, *ENGINE], body)


def searches(rows: Sequence[Row], law: str) -> Table:
    """Return every symbolic search and its formula, as a table that is shown when asked for."""
    found = [result for row in rows for result in row.of_kind(SEARCH)]
    return Table.of(f"Formulas, {printable(law)}", found, SEARCHES, folded=True)


def printed() -> Table:
    """Return the published rows, which no table mixes with measured ones."""
    columns = [
        Column("model", value=lambda row: Value(row.model, kind="name")),
        Column("formula", value=lambda row: Value(row.formula, kind="formula")),
        Column("constant", value=lambda row: number(row.constant, "g")),
        Column("source", value=lambda row: Value(row.source, kind="name")),
    ]
    return Table.of(PUBLISHED, published.ROWS, columns, PUBLISHED_NOTE)


def seeds(row: Row) -> str:
    """Return how many trainings a row has; one is called one."""
    count = "one training" if row.seeds == 1 else f"{row.seeds} seeds" if row.seeds else "-"
    return f"{count}, {row.failed} failed" if row.failed else count


def verdict(entry: LawRate) -> str:
    """Return the common verdict of an engine's searches.

    Formulas that do not describe the predictions found no law, which is not a wrong law.
    """
    if entry.found:
        return "law"
    if entry.failed == entry.total:
        return "all failed"
    if entry.r2_log is None or entry.r2_log.value < MINIMUM_R2_LOG:
        return "no law found"
    frequent = max(sorted(entry.verdicts), key=entry.verdicts.__getitem__)
    return frequent if frequent in VERDICTS else "unknown verdict"


def _percent(value: Interval | None) -> Value:
    if value is None:
        return NOTHING
    middle, low, high = map(_share, value)
    return Value(middle, f"[{low}, {high}]", order=value.value)


def _share(value: float) -> str:
    percent = 100 * value
    if percent < 0.01:
        return "<0.01%"
    return f"{percent:,.0f}%" if percent >= 100 else f"{percent:.2g}%"


def _name(text: str) -> Value:
    return Value(printable(text), kind="name")


def _stated(part: Any) -> Value:
    return _name("-" if part is None else str(part))


def _formula(search: Result) -> Value:
    text = search.details.get("expression") if search.ok else search.error
    return Value(printable(text, 2000), kind="formula")


def _bounded(row: Row, metric: str, remark: str = "") -> Value:
    """Return a measure that has bounds, of a few trainings one by one."""
    values = row.values.get(metric, {})
    if not values:
        return NOTHING
    found = mean_over_seeds(values.values(), ".4f", FORCES[metric].bounds)
    detail = found.detail if len(values) > 1 else ""
    return dataclasses.replace(found, detail=", ".join(filter(None, (detail, remark))))


def _r2(row: Row) -> Value:
    return _bounded(row, "r2_log", f"{100 * row.dropped:.2g}% dropped" if row.dropped else "")


def _fitted(row: Row, metric: str, value: Interval | None, form: str) -> Value:
    """Return an exponent or the constant: with its interval, or both of two trainings."""
    if len(values := row.values.get(metric, {})) == 2:
        return mean_over_seeds(values.values(), form)
    return interval(value, form)


def _law_found(entry: LawRate) -> Value:
    rate = f"{entry.found}/{entry.total}" + ("" if entry.found else f" {verdict(entry)}")
    failed = f", {entry.failed} failed" if entry.failed else ""
    wilson = f"[{entry.low:.2f}, {entry.high:.2f}]"
    return Value(rate, f"{wilson}{failed}", order=entry.found / entry.total)


def _strict(entry: LawRate) -> Value:
    if entry.strict is None:
        return NOTHING
    return Value(f"{entry.strict}/{entry.total}", order=entry.strict)


def _world(entry: LawRate) -> Value:
    counts = ", ".join(f"{printable(law)} {count}" for law, count in entry.laws.items())
    return Value(f"{printable(entry.world)} / {counts or '-'}", kind="name")


def _verdicts(entry: LawRate) -> Value:
    counts = {**entry.verdicts, **({"failed": entry.failed} if entry.failed else {})}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _name(", ".join(f"{count} {name}" for name, count in ordered))


def _symbolic(entry: LawRate) -> Value:
    late = "1 timeout" if entry.timeouts == 1 else f"{entry.timeouts} timeouts"
    rate = f"{entry.symbolic}/{entry.total}"
    return Value(rate, late if entry.timeouts else "", order=entry.symbolic)


def _shape(entry: LawRate) -> Value:
    if entry.shape is None:
        return NOTHING
    different = "1 shape" if entry.shapes == 1 else f"{entry.shapes} different"
    count = f"({entry.shape_count} of {entry.total}; {different})"
    return Value(printable(entry.shape, 120), count, kind="formula")


def _column(heading: str, note: str, value: Callable[[Any], Value], group: str = "") -> Column:
    """Return a column with its place in a terminal."""
    leaves = LEAVING.index(heading) + 1 if heading in LEAVING else 0
    return Column(heading, note, group, wide=heading not in TERMINAL, leaves=leaves, value=value)


_own = functools.partial(_column, group=OWN)
_found = functools.partial(_column, group=FORMULAS)


def _exponent(name: str) -> Column:
    return _own(
        name,
        "exponent in the predictions themselves, without any formula; no interval for fewer than "
        "10 sequences.",
        lambda row: _fitted(row, f"exponent_{name}", row.exponents.get(name), ".3f"),
    )


IDENTITY = (
    _column("model", "the model, or the control's name.", lambda row: _name(row.model)),
    _column("arm", "how it was trained; controls stand apart.", lambda row: _name(row.arm)),
    _column("labels", "the label budget.", lambda row: _name(row.labels)),
    _column(
        "seeds",
        "trainings behind the row; the interval of one training says nothing about the next one.",
        lambda row: Value(seeds(row), order=row.seeds),
    ),
)
EXAM = _own(
    "exam",
    "errors of ln F outside the training box over those of an orbit fit, geometric mean over "
    "shifts; -: not examined.",
    lambda row: interval(row.exam, ".3g"),
)
MEASURES = (
    *(_exponent(name) for name in NAMES),
    _own(
        "constant",
        "the same fit where r, m1 and m2 are 1; it moves with the exponents.",
        lambda row: _fitted(row, "constant", row.constant, "#.4g"),
    ),
    _own(
        "R2 of ln F",
        "how well the predictions match the true force: mean over seeds (each of a few). "
        "Dropped predictions are zero, negative or not finite; the exponents, the constant and "
        "this column leave them out.",
        _r2,
    ),
    _own(
        "cosine",
        "between predicted and true force vectors, where there are vectors: mean over seeds "
        "(each of a few).",
        lambda row: _bounded(row, "cosine"),
    ),
    _own(
        "not told from",
        "laws that the verdict cannot tell from the true one on the row's points.",
        lambda row: _name(", ".join(row.alike) or "-"),
    ),
)
ENGINE = (
    _found(
        "engine",
        "the symbolic search and its version; losses and rates of two engines do not compare.",
        lambda entry: Value(printable(entry.engine), kind="formula"),
    ),
    _found(
        "within 0.05",
        "searches whose formula has the law's exponents within 0.05 / all searches, failed ones "
        "included [Wilson 95%]; all on ONE set of predictions per model seed. It describes these "
        "predictions, as it does those of a look-up table: it is no sign of a law behind them.",
        _law_found,
    ),
    _found(
        "within 0.02",
        "the same within 0.02.",
        _strict,
    ),
    _found(
        "law of the world / laws that formulas are",
        "which laws of the registry the formulas are, and how many of them; none: no law of it; "
        "not compared: scored before this column was there. It describes predictions in the box: "
        "where the law is not that of the world, it is no knowledge of the world's.",
        _world,
    ),
    _found(
        "up to an offset",
        "searches whose formula is the law once an additive constant is dropped; those that are "
        "the law as they stand count too.",
        lambda entry: Value(f"{entry.found_nooff}/{entry.total}", order=entry.found_nooff),
    ),
    _found(
        "symbolic yes",
        "formulas that equal the law by algebra, up to the constant; a timeout is not a no.",
        _symbolic,
    ),
    _found("verdicts", "how many searches ended in each verdict.", _verdicts),
    _found(
        "constant of law",
        "constant of the formulas that are the law: median [95% bootstrap over searches].",
        lambda entry: interval(entry.constant, "#.4g"),
    ),
    _found(
        "fidelity",
        "R2 of ln formula against ln predictions: does the formula describe the model at all? "
        f"Below {MINIMUM_R2_LOG:g} the verdict is no law found.",
        lambda entry: interval(entry.r2_log, ".4f"),
    ),
    _found(
        "error in range",
        "median |formula / true law - 1| on the points that were scored.",
        lambda entry: _percent(entry.error_in_range),
    ),
    _found(
        "error outside",
        "median |formula / true law - 1| beyond their range: r up to twice its largest value, "
        "masses halved and doubled.",
        lambda entry: _percent(entry.error_outside),
    ),
    _found("complexity", "nodes of the formula.", lambda entry: interval(entry.complexity)),
    _found(
        "shape",
        "most frequent formula, numbers as C (how many of the searches; how many shapes in all).",
        _shape,
    ),
    _found(
        "CPU s",
        "CPU seconds of a search and its scoring, median.",
        lambda entry: number(entry.cpu_s, ".1f"),
    ),
)
SEARCHES = (
    Column("protocol", value=lambda search: _stated(search.case.protocol)),
    Column("model", value=lambda search: _stated(search.case.variant)),
    Column("arm", value=lambda search: _stated(search.case.arm)),
    Column("labels", value=lambda search: _stated(search.case.get("labels"))),
    Column("seed", value=lambda search: _stated(search.case.seed)),
    Column("engine", value=lambda search: _stated(search.case.get("engine"))),
    Column("search", value=lambda search: _stated(search.case.get("search"))),
    Column("verdict", value=lambda x: _stated(x.details["verdict"] if x.ok else x.status)),
    Column("symbolic", value=lambda search: _stated(search.details.get("symbolic"))),
    Column("dimensions", value=lambda search: _stated(search.details.get("dimensions"))),
    Column("fidelity", value=lambda search: number(search.value("r2_log"), ".4f")),
    Column("formula", value=_formula),
)
