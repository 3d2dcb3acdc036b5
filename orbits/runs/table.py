"""Tables: results grouped and averaged over seeds, for the terminal, Markdown and the page."""

from __future__ import annotations

import io
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean
from typing import Any, Literal

from orbits.runs.result import Quantity, Result
from orbits.runs.statistics import MINIMUM_SEEDS, over_seeds
from orbits.runs.untrusted import markdown, printable

WIDTH = 160
"""Characters of a line in a file or a pipe; a terminal has its own width."""
FOLDED = 16
"""Characters that a name or a formula needs in a terminal; a longer one runs over several lines,
and where there is less room, so does one of several words."""
FORMS = {"%": ".1f", "steps": ".0f"}
"""Formats of numbers by their unit; others have three decimals."""
GAP = 2
"""Characters between two columns."""
MARKS = r"[\\`*_~$#|\[\]]"
"""Characters that Markdown would take for markup."""


@dataclass(frozen=True)
class Value:
    """One box of a table.

    Attributes:
        text: Text that is read first.
        detail: Interval or remark; may be empty.
        kind: ``name`` and ``formula`` come from files; ``number`` is ours.
        order: Key by which the box sorts; None sorts a number last, a name by its text.
    """

    text: str
    detail: str = ""
    kind: Literal["name", "formula", "number"] = "number"
    order: float | None = None

    @property
    def words(self) -> str:
        """The box in a sentence: its text and its detail."""
        return f"{self.text} {self.detail}".strip()


NOTHING = Value("-")


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        heading: Name of the column.
        note: Meaning of its values, in a sentence; may be empty.
        group: The heading above its own, which neighbours share.
        wide: Whether a terminal leaves it out.
        leaves: Order in which a narrow terminal leaves columns out: 1 first; 0 never.
        value: The function of its value in a row, for :meth:`Table.of`.
    """

    heading: str
    note: str = ""
    group: str = ""
    wide: bool = False
    leaves: int = 0
    value: Callable[[Any], Value] = field(default=lambda row: NOTHING, compare=False, repr=False)


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        title: Its heading; may be empty.
        columns: Its columns.
        rows: One value per column in each row.
        caption: Caption above the table.
        folded: Whether a page shows it only when it is asked for.
        front: Places of the rows that a page's first screen shows; none leaves it to the screen.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    caption: str = ""
    folded: bool = False
    front: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        title: str,
        rows: Iterable[Any],
        columns: Sequence[Column],
        caption: str = "",
        folded: bool = False,
    ) -> Table:
        """Return a table of the values that columns have for each of some rows."""
        body = [[column.value(row) for column in columns] for row in rows]
        return cls(title, columns, body, caption, folded)

    @classmethod
    def of_text(
        cls, title: str, header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = ""
    ) -> Table:
        """Return a table of plain text."""
        boxes = [[Value(text, kind="name") for text in row] for row in rows]
        return cls(title, [Column(heading) for heading in header], boxes, caption)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The headings above the columns' own and how many columns each spans; may be empty."""
        if not any(column.group for column in self.columns):
            return []
        return [(name, len(list(x))) for name, x in groupby(self.columns, lambda c: c.group)]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """The notes of columns by heading; a note that columns share names them all."""
        with_note = [column for column in self.columns if column.note]
        return [
            (", ".join(column.heading for column in columns), note)
            for note, columns in groupby(with_note, lambda column: column.note)
        ]

    def to_markdown(self, level: int = 2) -> str:
        """Return the table as a section of Markdown (GitHub's tables)."""
        header = [escape(column.heading) for column in self.columns]
        lines = [header, ["---"] * len(header), *([_plain(v) for v in row] for row in self.rows)]
        parts = [f"{'#' * level} {escape(self.title)}"] if self.title else []
        parts += [escape(self.caption)] if self.caption else []
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
        return "\n\n".join(parts) + "\n"

    def to_text(self) -> str:
        """Return the table for a terminal, without the columns for which there is no room.

        Columns that are ``wide``, or in which nothing stands, are left out too; a line names them.
        """
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        terminal = sys.stdout.isatty()
        console = Console(
            file=io.StringIO(),
            width=shutil.get_terminal_size((WIDTH, 24)).columns,
            force_terminal=terminal,
            color_system="standard" if terminal else None,
            markup=False,
            highlight=False,
            emoji=False,
        )
        shown, between = self._layout(console.width)
        table = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for place, width in zip(shown, self._widths(shown, between, console.width), strict=True):
            heading = Text(printable(self.columns[place].heading))
            table.add_column(heading, overflow="fold", width=width)
        for row in self.rows:
            table.add_row(*(Text(_words(row[place], between)) for place in shown))
        if self.title:
            console.print(Text(printable(self.title), style="bold"))
        console.print(table)
        if self.caption:
            console.print(Text(printable(self.caption, 2000)))
        columns = [x.heading for i, x in enumerate(self.columns) if i not in shown]
        if left_out := columns + ["intervals and remarks"] * (between is None):
            said = "Columns not shown here" if columns else "Not shown here"
            console.print(Text(f"{said}: {printable(', '.join(left_out), 2000)}.", "dim"))
        file = console.file
        assert isinstance(file, io.StringIO)
        return "".join(f"{line.rstrip()}\n" for line in file.getvalue().split("\n")[:-1])

    def _layout(self, width: int) -> tuple[list[int], str | None]:
        """Return the columns that fit, and the separator of a text and its detail.

        Details go below their texts first, then columns leave one by one; without details at all,
        with a line for each word of a name, and without the last columns where that is not enough.
        """
        empty = {
            place
            for place in range(len(self.columns))
            if self.rows and all(row[place].text == "-" for row in self.rows)
        }
        shown = [i for i, column in enumerate(self.columns) if not column.wide and i not in empty]
        leaving = sorted({self.columns[place].leaves for place in shown} - {0})
        tries: list[tuple[list[int], str | None]] = [(shown, " "), (shown, "\n")]
        for turn in leaving:
            shown = [place for place in shown if self.columns[place].leaves != turn]
            tries.append((shown, "\n"))
        tries.append((shown, None))
        for places, between in tries:
            if sum(self._needed(x, between, FOLDED) + GAP for x in places) <= width + GAP:
                return places, between
        while len(shown) > 1 and sum(self._least(x) + GAP for x in shown) > width + GAP:
            shown = shown[:-1]
        return shown, None

    def _widths(self, shown: Sequence[int], between: str | None, width: int) -> list[int]:
        """Return the width of each column: names and formulas get the room that numbers leave."""
        widths = [self._needed(place, between, FOLDED) for place in shown]
        spare = width - sum(widths) - GAP * (len(shown) - 1)
        for number, place in enumerate(shown):
            more = min(max(spare, 0), self._needed(place, between) - widths[number])
            widths[number] += more
            spare -= more
        more_than_least = [x - self._least(place) for x, place in zip(widths, shown, strict=True)]
        while spare < 0 and any(more_than_least):
            widest = max(range(len(shown)), key=more_than_least.__getitem__)
            widths[widest] -= 1
            more_than_least[widest] -= 1
            spare += 1
        return widths

    def _needed(self, place: int, between: str | None, folded: int = 2000) -> int:
        """Return the characters that a column needs if its names and formulas may be folded."""
        from rich.cells import cell_len

        texts = [_words(row[place], between) for row in self.rows]
        needed = max((cell_len(line) for text in texts for line in text.split("\n")), default=0)
        if not self._is_numeric(place):
            needed = min(needed, folded)
        return max(needed, *map(cell_len, (self.columns[place].heading or "-").split()))

    def _least(self, place: int) -> int:
        """Return the characters that a column needs if its names have a line for each word."""
        needed = self._needed(place, None, FOLDED)
        if self._is_numeric(place):
            return needed
        texts = [self.columns[place].heading, *(row[place].text for row in self.rows)]
        return min(needed, max(len(word) for text in texts for word in (text.split() or [text])))

    def _is_numeric(self, place: int) -> bool:
        return all(row[place].kind == "number" for row in self.rows)


def escape(text: str) -> str:
    """Return text that Markdown and the HTML within it show as it is."""
    return markdown(text, marks=MARKS)


def number(value: float | None, form: str = ".3g") -> Value:
    """Return a number as a box of a table; ``-`` for None."""
    return NOTHING if value is None else Value(format(value, f"z{form}"), order=value)


def interval(value: Sequence[float] | None, form: str = ".3g") -> Value:
    """Return (value, low, high), or (value,), as a box of a table; ``-`` for None."""
    if value is None:
        return NOTHING
    middle, *ends = (format(x, f"z{form}") for x in value)
    if not ends:
        return Value(middle, order=value[0])
    bounded = all(map(math.isfinite, value[1:]))
    detail = f"[{', '.join(ends)}]" if bounded else "[too few to tell]"
    return Value(middle, detail, order=value[0])


def mean_over_seeds(
    values: Iterable[float], form: str = ".3f", bounds: tuple[float, float] | None = None
) -> Value:
    """Return the mean of trainings: with its interval, or with each of them if they are few.

    Two have no interval. Three have, but it is symmetric and 2.5 standard deviations wide a side,
    which a measure near its bounds does not allow: those are shown one by one too.

    Args:
        values: One per training.
        form: Format of each number.
        bounds: Of the measure, see :class:`orbits.runs.result.Quantity`.
    """
    found = list(values)
    if not found:
        return Value("")
    if lost := sum(not math.isfinite(value) for value in found):
        return Value("not finite", f"(in {lost} of {len(found)})")
    if len(found) > MINIMUM_SEEDS or (len(found) == MINIMUM_SEEDS and bounds is None):
        mean, low, high = over_seeds(found)
        least, largest = bounds or (-math.inf, math.inf)
        return interval((mean, max(low, least), min(high, largest)), form)
    mean = fmean(found)
    each = ", ".join(format(value, f"z{form}") for value in found)
    return Value(
        format(mean, f"z{form}"), "(one seed)" if len(found) == 1 else f"({each})", order=mean
    )


def seed_table(
    title: str,
    results: Iterable[Result],
    keys: Sequence[str],
    metrics: Iterable[str],
    caption: str = "",
    quantity: Callable[[str], Quantity] | None = None,
) -> Table:
    """Return a table of some metrics, averaged over seeds, with a row per combination of keys.

    Args:
        title: Its heading.
        results: Results; rows are in their order.
        keys: Fields of the case or names of its setting; they head the first columns.
        metrics: Metrics by name; those that no result has are left out.
        caption: Caption above the table.
        quantity: Returns what a metric means, of which the unit and the bounds are looked at.

    Raises:
        ValueError: Two results have the same keys and seed.
    """
    found = [result for result in results if result.ok]
    columns = {metric: by_seed(found, metric, *keys) for metric in metrics}
    columns = {metric: values for metric, values in columns.items() if values}
    rows = dict.fromkeys(tuple(result.case.get(key) for key in keys) for result in found)
    body = [
        [
            *(Value(_shown(part), kind="name") for part in row),
            *(
                _over_seeds(values.get(row, {}).values(), quantity and quantity(metric))
                for metric, values in columns.items()
            ),
        ]
        for row in rows
        if any(row in values for values in columns.values())
    ]
    return Table(title, [Column(name) for name in (*keys, *columns)], body, caption)


def _over_seeds(values: Iterable[float], quantity: Quantity | None) -> Value:
    if quantity is None:
        return mean_over_seeds(values)
    return mean_over_seeds(values, FORMS.get(quantity.unit, ".3f"), quantity.bounds)


def by_seed(
    results: Iterable[Result], metric: str, *keys: str
) -> dict[tuple[Any, ...], dict[int | None, float]]:
    """Return the values of a metric by seed, for each combination of keys.

    Raises:
        ValueError: Two results have the same keys and seed.
    """
    found: dict[tuple[Any, ...], dict[int | None, float]] = {}
    for result in results:
        if result.ok and metric in result.metrics:
            key = tuple(result.case.get(name) for name in keys)
            values = found.setdefault(key, {})
            if result.case.seed in values:
                raise ValueError(f"{metric}: two results of {key}, seed {result.case.seed}")
            values[result.case.seed] = result.metrics[metric].value
    return found


def by_variant(results: Iterable[Result], metric: str) -> dict[str, dict[int | None, float]]:
    """Return the values of a metric by seed for each variant; what nothing trained has None."""
    return {variant: seeds for (variant,), seeds in by_seed(results, metric, "variant").items()}


def _shown(part: Any) -> str:
    if isinstance(part, bool):
        return "on" if part else "off"
    return "" if part is None else str(part)


def _plain(value: Value) -> str:
    if value == NOTHING:
        return value.text
    text = value.text if value.kind != "number" else markdown(value.text)
    if value.kind == "formula":
        # Nothing can be escaped inside a code span, so what would end it or its box is no code.
        text = escape(text) if re.search(r"[`|\\]", text) else f"`{text}`"
    elif value.kind == "name":
        text = escape(text)
    return f"{text} {markdown(value.detail)}".strip()


def _words(value: Value, between: str | None = " ") -> str:
    """Return a box as text, without its detail where nothing stands between the two."""
    parts = [value.text] if between is None else [value.text, value.detail]
    return (between or "").join(printable(part, 2000) for part in parts if part)
