"""The papers' tables as data, for reports that print their numbers beside ours.

One JSON file of this folder is one table, or one panel of a table that has several baselines.
Numbers keep the digits of the page: ``3.2000`` is read as the decimal 3.2000, for its last digit
says how exactly it is known. Edit such a file as text; a JSON writer drops the zeros.

Lengths are multiples of the training length, since ours are other lengths: ``loss@8x`` is the
loss at eight times as many tokens. A row is called as we call it: the label of the attention
variant or the name of the mixer; ``label`` is what the paper prints. A metric may state its
``margin``, and ``equal`` lists what the text says not to differ, in its words.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

FOLDER = Path(__file__).parent
DIRECTIONS = ("lower", "higher", "none")
OPERATIONS = ("difference", "ratio")

Number = TypeVar("Number", Decimal, float)
Found = TypeVar("Found")


@dataclass(frozen=True)
class PublishedColumn:
    """A column of a table, printed or derived from two others.

    Attributes:
        name: Metric, with its length or task: ``loss@2x``, ``acc@piqa``.
        direction: Better values: ``lower``, ``higher``, or ``none``.
        unit: The unit of its values.
        column: The heading as printed; empty if derived.
        of: The two columns it is derived from; empty if printed.
        op: Operation: their ``difference`` (first minus second) or ``ratio`` (first by second).
        margin: Least size of a difference that counts; None: see :meth:`PublishedTable.margin`.
    """

    name: str
    direction: str
    unit: str
    column: str = ""
    of: tuple[str, ...] = ()
    op: str = ""
    margin: Decimal | None = None

    def __post_init__(self) -> None:
        if self.margin is not None and not (
            isinstance(self.margin, Decimal) and Decimal(0) < self.margin < Decimal("Infinity")
        ):
            raise ValueError(
                f"margin of {self.name} must be a positive number, got {self.margin!r}"
            )
        _choose("direction", self.direction, DIRECTIONS, self.name)
        if self.of:
            _choose("op", self.op, OPERATIONS, self.name)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the largest value of a score in per cent; None of other columns."""
        return (0, 100) if (self.unit, self.direction) == ("%", "higher") else None

    def read(self, columns: Mapping[str, Number]) -> Number | None:
        """Return the metric of a row's columns, the paper's or ours.

        None if a column is missing, or if a ratio is by zero.
        """
        if not self.of:
            return columns.get(self.name)
        first, second = map(columns.get, self.of)
        if first is None or second is None:
            return None
        if self.op == "difference":
            return first - second
        return first / second if second else None

    def resolution(self, columns: Mapping[str, Decimal]) -> Decimal:
        """Return the largest distance of the paper's value from the unrounded one.

        Half of the last printed digit; for a derived metric, what two such errors add up to.
        """
        if not self.of:
            return _half_digit(columns[self.name])
        first, second = (columns[name] for name in self.of)
        if self.op == "difference":
            return _half_digit(first) + _half_digit(second)
        return (_half_digit(first) + abs(first / second) * _half_digit(second)) / abs(second)


@dataclass(frozen=True)
class PublishedRow:
    """A row of a table.

    Attributes:
        row: Our label of it.
        label: The label as printed.
        values: The printed numbers by metric; a cell without a number is left out.
        printed_notes: Remarks of the paper on the row, beside its numbers.
    """

    row: str
    label: str
    values: Mapping[str, Decimal]
    printed_notes: str = ""

    def __post_init__(self) -> None:
        for metric, value in self.values.items():
            if not isinstance(value, Decimal):
                raise ValueError(f"{metric} of {self.row} must be a number, got {value!r}")


@dataclass(frozen=True)
class Equality:
    """A claim of the paper's text that a row does not differ from the baseline.

    Attributes:
        row: Our label of the row.
        metric: The metric.
        words: The paper's words.
    """

    row: str
    metric: str
    words: str


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper.

    Attributes:
        table: The name of the table and of its file.
        paper: The paper.
        place: Place in the paper.
        study: The study it belongs to.
        setting: Setting of the training: model, recipe and data.
        baseline: The row that differences are taken against.
        metrics: The columns as printed, then the derived ones.
        rows: The rows as printed.
        notes: Known errors, and what the table leaves open.
        equal: Equalities that the text states, whatever the digits.
    """

    table: str
    paper: str
    place: str
    study: str
    setting: str
    baseline: str
    metrics: tuple[PublishedColumn, ...]
    rows: tuple[PublishedRow, ...]
    notes: tuple[str, ...] = ()
    equal: tuple[Equality, ...] = ()

    def __post_init__(self) -> None:
        _unique("metric", (metric.name for metric in self.metrics))
        _unique("row", (row.row for row in self.rows))
        self.row(self.baseline)
        printed = {metric.name for metric in self.metrics if not metric.of}
        for row in self.rows:
            if unknown := row.values.keys() - printed:
                raise ValueError(f"{row.row} has values of no column: {', '.join(sorted(unknown))}")
        for claim in self.equal:
            self.row(claim.row)
            self.metric(claim.metric)

    def difference(self, row: str, metric: PublishedColumn) -> tuple[Decimal, Decimal] | None:
        """Return a row's difference to the baseline, and how far roundings can have moved it.

        None if the paper does not print one of the two.
        """
        both = [self.row(name).values for name in (row, self.baseline)]
        value, reference = map(metric.read, both)
        if value is None or reference is None:
            return None
        return value - reference, metric.resolution(both[0]) + metric.resolution(both[1])

    def is_equal(self, row: str, metric: PublishedColumn) -> bool:
        """Tell whether the paper shows no difference: by its words, or within its digits."""
        if any((claim.row, claim.metric) == (row, metric.name) for claim in self.equal):
            return True
        found = self.difference(row, metric)
        return found is not None and abs(found[0]) < found[1]  # rounding can have made its sign

    def margin(self, metric: PublishedColumn) -> Decimal | None:
        """Return the least size of a difference that counts where the paper shows none.

        The column's own; else half of the smallest difference that the paper does show in it, and
        None if it shows none.
        """
        if metric.margin is not None:
            return metric.margin
        found = (
            self.difference(row.row, metric)
            for row in self.rows
            if row.row != self.baseline and not self.is_equal(row.row, metric)
        )
        shown = [abs(each[0]) for each in found if each is not None]
        return min(shown) / 2 if shown else None

    def metric(self, name: str) -> PublishedColumn:
        """Return the metric called ``name``.

        Raises:
            ValueError: The table has no such metric.
        """
        return _find("metric", name, {metric.name: metric for metric in self.metrics}, self.table)

    def row(self, label: str) -> PublishedRow:
        """Return the row that we call ``label``.

        Raises:
            ValueError: The table has no such row.
        """
        return _find("row", label, {row.row: row for row in self.rows}, self.table)


def tables(study: str | None = None) -> tuple[PublishedTable, ...]:
    """Return the tables of a study (none, if the papers print no numbers of it), or all."""
    return tuple(table for table in _all().values() if study in (None, table.study))


def get(name: str) -> PublishedTable:
    """Return the table called ``name``.

    Raises:
        ValueError: There is no such table.
    """
    return _find("table", name, _all(), FOLDER.name)


def load(path: Path) -> PublishedTable:
    """Read one table.

    Raises:
        ValueError: The file is no table: the message names the file, the value and the fix.
    """
    try:
        record = json.loads(
            path.read_text(encoding="utf-8"),
            parse_float=Decimal,
            parse_int=Decimal,
            parse_constant=str,  # NaN and Infinity are no numbers of a table
            object_pairs_hook=_object,
        )
        table = _table(**record)
        if table.table != path.stem:
            raise ValueError(f"the table is called {table.table!r}; give the file that name")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    return table


@functools.cache
def _all() -> dict[str, PublishedTable]:
    return {path.stem: load(path) for path in sorted(FOLDER.glob("*.json"))}


def _table(
    metrics: Iterable[Mapping[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    derived: Iterable[Mapping[str, Any]] = (),
    notes: Iterable[str] = (),
    equal: Iterable[Mapping[str, str]] = (),
    **about: str,
) -> PublishedTable:
    columns = tuple(PublishedColumn(**each) for each in metrics)
    by_name = {column.name: column for column in columns}
    return PublishedTable(
        metrics=columns + tuple(_derived(by_name, **each) for each in derived),
        rows=tuple(PublishedRow(**each) for each in rows),
        notes=tuple(notes),
        equal=tuple(Equality(**each) for each in equal),
        **about,
    )


def _derived(
    columns: Mapping[str, PublishedColumn],
    name: str,
    of: Sequence[str],
    op: str,
    margin: Decimal | None = None,
) -> PublishedColumn:
    """Return a derived metric, with the unit and the better direction of its first column."""
    if len(of) != 2:
        raise ValueError(f"{name} must be derived of two columns, got {list(of)}")
    first, _ = (_find("metric", each, columns, name) for each in of)
    unit = "1" if op == "ratio" else first.unit
    return PublishedColumn(name, first.direction, unit, of=tuple(of), op=op, margin=margin)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    _unique("key", (key for key, _ in pairs))  # of two equal ones, JSON would keep the last
    return dict(pairs)


def _half_digit(printed: Decimal) -> Decimal:
    return Decimal("0.5").scaleb(int(printed.as_tuple().exponent))


def _find(kind: str, name: str, among: Mapping[str, Found], where: str) -> Found:
    if name not in among:
        raise ValueError(f"no {kind} {name!r} in {where}; choose from {', '.join(among)}")
    return among[name]


def _choose(field: str, value: str, choices: Sequence[str], name: str) -> None:
    if value not in choices:
        raise ValueError(f"unknown {field} {value!r} of {name}; choose from {', '.join(choices)}")


def _unique(kind: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"duplicate {kind} {', '.join(twice)}; keep one")
