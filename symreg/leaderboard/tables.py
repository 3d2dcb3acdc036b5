"""Tables of a leaderboard: the value and the meaning of each column."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from orbits.runs.table import NOTHING, Column, Table, Value, interval, mean_over_seeds, number
from orbits.runs.untrusted import printable
from symreg.formula.thresholds import MINIMUM_R2_LOG, VERDICTS
from symreg.leaderboard import published
from symreg.leaderboard.quantities import FORCES
from symreg.leaderboard.rate import LawRate
from symreg.leaderboard.row import SEARCH, Row, measured
from symreg.points import NAMES

Source = TypeVar("Source", Row, LawRate)
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


@dataclass(frozen=True)
class _Source(Generic[Source]):
    """Column of a table, with its value for a row or for an engine."""

    heading: str
    note: str
    value: Callable[[Source], Value]

    def column(self, group: str) -> Column:
        leaves = LEAVING.index(self.heading) + 1 if self.heading in LEAVING else 0
        wide = self.heading not in TERMINAL
        return Column(self.heading, self.note, group, wide=wide, leaves=leaves)


def contestants(title: str, rows: Sequence[Row]) -> Table:
    """Return a table of rows in order, one line per row and engine."""
    place = (
        "by the exam outside the training box, where there was one; then by the distance of the "
        "exponents from the law's. Overlapping intervals do not rank."
    )
    measures = (EXAM, *MEASURES) if any(row.exam for row in rows) else MEASURES
    columns = [
        Column("#", place, wide=True),
        *(source.column("") for source in IDENTITY),
        *(source.column(OWN) for source in measures),
        *(source.column(FORMULAS) for source in ENGINE),
    ]
    body = [
        [
            Value(str(rank), order=rank),
            *(source.value(row) for source in (*IDENTITY, *measures)),
            *(NOTHING if entry is None else source.value(entry) for source in ENGINE),
        ]
        for rank, row in enumerate(rows, start=1)
        for entry in row.laws or [None]
    ]
    return Table(title, columns, body)


def searches(results: Iterable[Result], law: str) -> Table:
    """Return every symbolic search and its formula, as a table that is shown when asked for."""
    headings = (
        *("protocol", "model", "arm", "labels", "seed", "engine", "search"),
        *("verdict", "symbolic", "dimensions", "fidelity", "formula"),
    )
    body = []
    for result in measured(results, law):
        if result.case.kind != SEARCH:
            continue
        case, details = result.case, result.details
        identity = [case.protocol, case.variant, case.arm, case.get("labels"), case.seed]
        identity += [case.get("engine"), case.get("search")]
        identity += [details["verdict"] if result.ok else result.status]
        identity += [details.get("symbolic"), details.get("dimensions")]
        formula = printable(details.get("expression") if result.ok else result.error, 2000)
        body.append(
            [
                *(_name("-" if text is None else str(text)) for text in identity),
                number(result.value("r2_log"), ".4f"),
                Value(formula, kind="formula"),
            ]
        )
    return Table(
        f"Formulas, {printable(law)}", [Column(heading) for heading in headings], body, folded=True
    )


def printed() -> Table:
    """Return the published rows, which no table mixes with measured ones."""
    body = [
        [
            Value(row.model, kind="name"),
            Value(row.formula, kind="formula"),
            number(row.constant, "g"),
            Value(row.source, kind="name"),
        ]
        for row in published.ROWS
    ]
    columns = [Column(heading) for heading in ("model", "formula", "constant", "source")]
    return Table(PUBLISHED, columns, body, PUBLISHED_NOTE)


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


def _exponent(name: str) -> _Source[Row]:
    return _Source(
        name,
        "exponent in the predictions themselves, without any formula; no interval for fewer than "
        "10 sequences.",
        lambda row: _fitted(row, f"exponent_{name}", row.exponents.get(name), ".3f"),
    )


IDENTITY: tuple[_Source[Row], ...] = (
    _Source("model", "the model, or the control's name.", lambda row: _name(row.model)),
    _Source("arm", "how it was trained; controls stand apart.", lambda row: _name(row.arm)),
    _Source("labels", "the label budget.", lambda row: _name(row.labels)),
    _Source(
        "seeds",
        "trainings behind the row; the interval of one training says nothing about the next one.",
        lambda row: Value(seeds(row), order=row.seeds),
    ),
)
EXAM: _Source[Row] = _Source(
    "exam",
    "errors of ln F outside the training box over those of an orbit fit, geometric mean over "
    "shifts; -: not examined.",
    lambda row: interval(row.exam, ".3g"),
)
MEASURES: tuple[_Source[Row], ...] = (
    *(_exponent(name) for name in NAMES),
    _Source(
        "constant",
        "the same fit where r, m1 and m2 are 1; it moves with the exponents.",
        lambda row: _fitted(row, "constant", row.constant, "#.4g"),
    ),
    _Source(
        "R2 of ln F",
        "how well the predictions match the true force: mean over seeds (each of a few). "
        "Dropped predictions are zero, negative or not finite; the exponents, the constant and "
        "this column leave them out.",
        _r2,
    ),
    _Source(
        "cosine",
        "between predicted and true force vectors, where there are vectors: mean over seeds "
        "(each of a few).",
        lambda row: _bounded(row, "cosine"),
    ),
    _Source(
        "not told from",
        "laws that the verdict cannot tell from the true one on the row's points.",
        lambda row: _name(", ".join(row.alike) or "-"),
    ),
)
ENGINE: tuple[_Source[LawRate], ...] = (
    _Source(
        "engine",
        "the symbolic search and its version; losses and rates of two engines do not compare.",
        lambda entry: Value(printable(entry.engine), kind="formula"),
    ),
    _Source(
        "within 0.05",
        "searches whose formula has the law's exponents within 0.05 / all searches, failed ones "
        "included [Wilson 95%]; all on ONE set of predictions per model seed. It describes these "
        "predictions, as it does those of a look-up table: it is no sign of a law behind them.",
        _law_found,
    ),
    _Source(
        "within 0.02",
        "the same within 0.02.",
        lambda entry: Value(f"{entry.strict}/{entry.total}", order=entry.strict),
    ),
    _Source(
        "law of the world / laws found",
        "which laws of the registry the formulas are, and how many of them; none: no law of it; "
        "not compared: scored before this column was there. A model must not find a law in a "
        "world where it does not rule.",
        _world,
    ),
    _Source(
        "up to an offset",
        "searches whose formula is the law once an additive constant is dropped; those that are "
        "the law as they stand count too.",
        lambda entry: Value(f"{entry.found_nooff}/{entry.total}", order=entry.found_nooff),
    ),
    _Source(
        "symbolic yes",
        "formulas that equal the law by algebra, up to the constant; a timeout is not a no.",
        _symbolic,
    ),
    _Source("verdicts", "how many searches ended in each verdict.", _verdicts),
    _Source(
        "constant of law",
        "constant of the formulas that are the law: median [95% bootstrap over searches].",
        lambda entry: interval(entry.constant, "#.4g"),
    ),
    _Source(
        "fidelity",
        "R2 of ln formula against ln predictions: does the formula describe the model at all? "
        f"Below {MINIMUM_R2_LOG:g} the verdict is no law found.",
        lambda entry: interval(entry.r2_log, ".4f"),
    ),
    _Source(
        "error in range",
        "median |formula / true law - 1| on the points that were scored.",
        lambda entry: _percent(entry.error_in_range),
    ),
    _Source(
        "error outside",
        "median |formula / true law - 1| beyond their range: r up to twice its largest value, "
        "masses halved and doubled.",
        lambda entry: _percent(entry.error_outside),
    ),
    _Source("complexity", "nodes of the formula.", lambda entry: interval(entry.complexity)),
    _Source(
        "shape",
        "most frequent formula, numbers as C (how many of the searches; how many shapes in all).",
        _shape,
    ),
    _Source(
        "CPU s",
        "CPU seconds of a search and its scoring, median.",
        lambda entry: number(entry.cpu_s, ".1f"),
    ),
)
