"""The columns of a leaderboard: what each holds and, in one line, what it means."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, Literal, TypeVar

from orbits.untrusted import printable
from symreg.exponents import Interval
from symreg.law_rate import LawRate
from symreg.points import NAMES
from symreg.result_rows import Row
from symreg.score import MINIMUM_R2_LOG, VERDICTS

Source = TypeVar("Source", Row, LawRate)


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        value: What is read first.
        detail: Its interval or remark; may be empty.
        kind: ``name`` and ``formula`` come from files and must be escaped, ``figure`` is ours.
        order: What a numeric column is sorted by; None sorts last, or by ``value`` for a name.
    """

    value: str
    detail: str = ""
    kind: Literal["name", "formula", "figure"] = "figure"
    order: float | None = None


NOTHING = Cell("-")


@dataclass(frozen=True)
class Column(Generic[Source]):
    """One column: its heading, the note that explains it, and its cell for a row or engine."""

    heading: str
    note: str
    cell: Callable[[Source], Cell]


def tables(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row], list[Row]]]:
    """Yield each task and protocol as its title, its contestants and its controls."""
    for (task, protocol), group in groupby(rows, key=lambda row: (row.task, row.protocol)):
        members = list(group)
        yield (
            f"{printable(task)}, protocol {printable(protocol)}",
            [row for row in members if not row.is_control],
            [row for row in members if row.is_control],
        )


def seeds(row: Row) -> str:
    """Return how many model seeds a row has; one is called one."""
    count = "1 seed" if row.seeds == 1 else f"{row.seeds} seeds" if row.seeds else "-"
    return f"{count}, {row.failed} failed" if row.failed else count


def interval(value: Interval, form: str) -> tuple[str, str]:
    """Return a value and its interval as text."""
    middle, low, high = (format(number, form) for number in value)
    bounded = all(map(math.isfinite, value[1:]))
    return middle, f"[{low}, {high}]" if bounded else "[too few sequences]"


def verdict(entry: LawRate) -> str:
    """Return what the searches of one engine say together.

    Formulas that do not describe the predictions found no law, which is not a wrong law.
    """
    if entry.found:
        return "law"
    if entry.failed == entry.total:
        return "all failed"
    if entry.r2_log is None or entry.r2_log[0] < MINIMUM_R2_LOG:
        return "no law found"
    frequent = max(sorted(entry.verdicts), key=entry.verdicts.__getitem__)
    return frequent if frequent in VERDICTS else "unknown verdict"


def _measure(value: Interval | None, form: str) -> Cell:
    return NOTHING if value is None else Cell(*interval(value, form), order=value[0])


def _percent(value: Interval | None) -> Cell:
    if value is None:
        return NOTHING
    middle, low, high = map(_share, value)
    return Cell(middle, f"[{low}, {high}]", order=value[0])


def _share(value: float) -> str:
    percent = 100 * value
    if percent < 0.01:
        return "<0.01%"
    return f"{percent:,.0f}%" if percent >= 100 else f"{percent:.2g}%"


def _name(text: str) -> Cell:
    return Cell(printable(text), kind="name")


def _exponent(name: str) -> Column[Row]:
    return Column(
        name,
        "exponent in the predictions themselves, without any formula: mean over seeds "
        "[lowest and highest end of the seeds' 95% bootstrap intervals over sequences; none for "
        "fewer than 10 sequences].",
        lambda row: _measure(row.exponents.get(name), ".3f"),
    )


def _spread(value: Interval | None, row: Row, remark: str = "") -> Cell:
    if value is None:
        return NOTHING
    mean, low, high = value
    spread = f"({low:.4f}..{high:.4f})" if row.seeds > 1 else ""
    return Cell(f"{mean:.4f}", ", ".join(filter(None, (spread, remark))), order=mean)


def _r2(row: Row) -> Cell:
    return _spread(row.r2_log, row, f"{100 * row.dropped:.2g}% dropped" if row.dropped else "")


def _law_found(entry: LawRate) -> Cell:
    rate = f"{entry.found}/{entry.total}" + ("" if entry.found else f" {verdict(entry)}")
    failed = f", {entry.failed} failed" if entry.failed else ""
    wilson = f"[{entry.low:.2f}, {entry.high:.2f}]"
    return Cell(rate, f"{wilson}{failed}", order=entry.found / entry.total)


def _world(entry: LawRate) -> Cell:
    found = ", ".join(f"{printable(law)} {count}" for law, count in entry.laws.items())
    return Cell(f"{printable(entry.world)} / {found or '-'}", kind="name")


def _verdicts(entry: LawRate) -> Cell:
    counts = {**entry.verdicts, **({"failed": entry.failed} if entry.failed else {})}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _name(", ".join(f"{count} {name}" for name, count in ordered))


def _symbolic(entry: LawRate) -> Cell:
    late = "1 timeout" if entry.timeouts == 1 else f"{entry.timeouts} timeouts"
    return Cell(
        f"{entry.symbolic}/{entry.total}", late if entry.timeouts else "", order=entry.symbolic
    )


def _shape(entry: LawRate) -> Cell:
    if entry.shape is None:
        return NOTHING
    different = "1 shape" if entry.shapes == 1 else f"{entry.shapes} different"
    return Cell(
        printable(entry.shape, 120),
        f"({entry.shape_count} of {entry.total}; {different})",
        kind="formula",
    )


IDENTITY: tuple[Column[Row], ...] = (
    Column("model", "the model, or the control's name.", lambda row: _name(row.model)),
    Column("arm", "how it was trained; controls stand apart.", lambda row: _name(row.arm)),
    Column("labels", "the label budget.", lambda row: _name(row.labels)),
    Column(
        "seeds",
        "trainings behind the row; the interval of one seed says nothing about the next one.",
        lambda row: Cell(seeds(row), order=row.seeds),
    ),
)
MEASURES: tuple[Column[Row], ...] = (
    *(_exponent(name) for name in NAMES),
    Column(
        "constant",
        "the same fit where r, m1 and m2 are 1; it moves with the exponents.",
        lambda row: _measure(row.constant, "#.4g"),
    ),
    Column(
        "R2 of ln F",
        "how well the predictions match the true force: mean over seeds (smallest..largest). "
        "Dropped predictions are zero, negative or not finite; the exponents, the constant and "
        "this column leave them out.",
        _r2,
    ),
    Column(
        "cosine",
        "between predicted and true force vectors, where there are vectors: mean over seeds "
        "(smallest..largest).",
        lambda row: _spread(row.cosine, row),
    ),
    Column(
        "not told from",
        "laws that the verdict cannot tell from the true one on the row's points.",
        lambda row: _name(", ".join(row.alike) or "-"),
    ),
)
ENGINE: tuple[Column[LawRate], ...] = (
    Column(
        "engine",
        "the symbolic search and its version; losses and rates of two engines do not compare.",
        lambda entry: Cell(printable(entry.engine), kind="formula"),
    ),
    Column(
        "law found",
        "searches whose formula is the law / all searches, failed ones included [Wilson 95%]; all "
        "on ONE set of predictions per model seed.",
        _law_found,
    ),
    Column(
        "law of the world / laws found",
        "which laws of the registry the formulas are, and how many of them; none: no law of it; "
        "not compared: scored before this column was there. A model must not find a law in a "
        "world where it does not rule.",
        _world,
    ),
    Column(
        "up to an offset",
        "searches whose formula is the law once an additive constant is dropped; those that are "
        "the law as they stand count too.",
        lambda entry: Cell(f"{entry.found_nooff}/{entry.total}", order=entry.found_nooff),
    ),
    Column(
        "symbolic yes",
        "formulas that equal the law by algebra, up to the constant; a timeout is not a no.",
        _symbolic,
    ),
    Column("verdicts", "how many searches ended in each verdict.", _verdicts),
    Column(
        "constant of law",
        "constant of the formulas that are the law: median [95% bootstrap over searches].",
        lambda entry: _measure(entry.constant, "#.4g"),
    ),
    Column(
        "fidelity",
        "R2 of ln formula against ln predictions: does the formula describe the model at all? "
        f"Below {MINIMUM_R2_LOG:g} the verdict is no law found.",
        lambda entry: _measure(entry.r2_log, ".4f"),
    ),
    Column(
        "error in range",
        "median |formula / true law - 1| on the points that were scored.",
        lambda entry: _percent(entry.error_in_range),
    ),
    Column(
        "error outside",
        "median |formula / true law - 1| beyond their range: r up to twice its largest value, "
        "masses halved and doubled.",
        lambda entry: _percent(entry.error_outside),
    ),
    Column(
        "complexity",
        "nodes of the formula.",
        lambda entry: _measure(entry.complexity, ".3g"),
    ),
    Column(
        "shape",
        "most frequent formula, numbers as C (how many of the searches; how many shapes in all).",
        _shape,
    ),
    Column(
        "CPU s",
        "CPU seconds of a search and its scoring, median.",
        lambda entry: (
            NOTHING if entry.cpu_s is None else Cell(f"{entry.cpu_s:.1f}", order=entry.cpu_s)
        ),
    ),
)
COLUMNS: tuple[Column[Any], ...] = (*IDENTITY, *MEASURES, *ENGINE)
HEADINGS = tuple(column.heading for column in COLUMNS)


def notes(headings: Collection[str] = HEADINGS) -> list[str]:
    """Return one line per note; columns that share one are named together."""
    shown = [column for column in COLUMNS if column.heading in headings]
    return [
        f"{', '.join(column.heading for column in columns)}: {note}"
        for note, columns in groupby(shown, key=lambda column: column.note)
    ]


def cells(row: Row) -> list[tuple[list[Cell], list[Cell]]]:
    """Return one line per engine: the row's own cells, the same on each, and the engine's."""
    own = [column.cell(row) for column in (*IDENTITY, *MEASURES)]
    laws = [[column.cell(entry) for column in ENGINE] for entry in row.laws]
    return [(own, law) for law in laws or [[NOTHING] * len(ENGINE)]]
