"""The leaderboard for a terminal: the columns that fit, and a note on each.

Plain text where the output is no terminal. Every string is handed over as text, never as markup.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orbits.untrusted import printable
from symreg import published
from symreg.result_rows import Row
from symreg.views import words
from symreg.views.columns import HEADINGS, Cell, cells, notes, seeds, tables
from symreg.views.words import Line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

WIDTH = 160
"""Columns of a file or a pipe; a terminal has its own."""

SHOWN = (
    *("model", "r", "m1", "m2", "constant", "R2 of ln F"),
    *("engine", "law found", "error outside", "shape"),
)
LEAVING = ("error outside", "R2 of ln F", "constant", "shape")
"""Columns that a narrow terminal does without, the first to go first."""

FOLDED = {"model": 22, "law found": 14, "shape": 18, "engine": 12}
"""Columns whose cells may run over several lines, and the least width that leaves them legible."""

BRIEF = ("R2 of ln F", "error outside")
"""Columns whose intervals are left to the other views."""

GAP = 2  # spaces between two columns


def to_text(rows: Sequence[Row], law: str = "newton", lines: Iterable[Line] = ()) -> str:
    """Return one table per task and protocol with its controls in a block below, and the notes.

    Args:
        rows: Rows of one law, in order; see :func:`symreg.result_rows.rows`.
        law: The true law.
        lines: The result lines, whose failures are listed with their errors.
    """
    from rich.console import Console

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

    def say(*sentences: str, style: str = "") -> None:
        for sentence in sentences:
            console.print(_plain(sentence, style))

    say(words.truth(law))
    left_out: tuple[str, ...] = ()
    for title, contestants, controls in tables(rows):
        members = [*contestants, *controls]
        say("", title, style="bold")
        say(*(f"WARNING: {text}" for text in words.warnings(members)), style="bold red")
        table, left_out = _fitting(console, contestants, controls)
        console.print(table)
        say(*words.alike(members, law))
    say("", words.PUBLISHED_TITLE, style="bold")
    console.print(_published())
    say(words.PUBLISHED_NOTE)
    if failed := words.failures(lines):
        say("", "Failed cells", style="bold")
        say(*failed)
    say("", *words.READING)
    say(*notes([heading for heading in SHOWN if heading not in left_out]))
    hidden = [heading for heading in HEADINGS if heading not in SHOWN or heading in left_out]
    say(f"Markdown and HTML have more columns: {', '.join(hidden)}.")
    file = console.file
    assert isinstance(file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().split("\n")[:-1])


def _fitting(
    console: Console, contestants: Sequence[Row], controls: Sequence[Row]
) -> tuple[Table, tuple[str, ...]]:
    """Return the table without as many columns as it must lose to fit, and their headings."""
    for count in range(len(LEAVING) + 1):
        left_out = LEAVING[:count]
        shown = [heading for heading in SHOWN if heading not in left_out]
        blocks = [
            [line for row in part for line in _lines(row, shown)]
            for part in (contestants, controls)
        ]
        widths = _widths(shown, [line for block in blocks for line in block], console.width)
        if sum(widths) + GAP * len(widths) <= console.width:
            break
    table = _empty(shown, widths)
    for number, block in enumerate(blocks):
        if number and block:
            table.add_section()
            table.add_row(_plain("controls", "bold"))
        for line in block:
            table.add_row(*line)
    return table, left_out


def _widths(shown: Sequence[str], lines: Iterable[Sequence[Text]], total: int) -> list[int]:
    """Return the width of each column: what its cells need, or less where they may be folded."""
    from rich.cells import cell_len

    needed = {heading: max(map(cell_len, heading.split())) for heading in shown}
    for line in lines:
        for heading, cell in zip(shown, line, strict=True):
            needed[heading] = max(needed[heading], *map(cell_len, cell.plain.split("\n")))
    widths = {
        heading: min(needed[heading], FOLDED.get(heading, needed[heading])) for heading in shown
    }
    spare = total - sum(widths.values()) - GAP * len(shown)
    for heading in filter(widths.__contains__, FOLDED):
        more = min(max(spare, 0), needed[heading] - widths[heading])
        widths[heading] += more
        spare -= more
    return list(widths.values())


def _empty(headings: Sequence[str], widths: Sequence[int | None]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for heading, width in zip(headings, widths, strict=True):
        table.add_column(heading, width=width, overflow="fold")
    return table


def _plain(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style)


def _lines(row: Row, shown: Sequence[str]) -> Iterator[list[Text]]:
    """Yield one line of cells per engine; the row's own are written once."""
    for number, (own, law) in enumerate(cells(row)):
        named = dict(zip(HEADINGS, (*own, *law), strict=True))
        named["model"] = Cell(named["model"].value, _how(row))
        for heading in HEADINGS[: len(own)] if number else ():
            named[heading] = Cell("")
        yield [_text(named[heading], heading not in BRIEF) for heading in shown]


def _how(row: Row) -> str:
    """Return how a row was made, in place of columns that would not fit."""
    parts = [printable(row.arm), f"{printable(row.labels)} labels", seeds(row)]
    parts += [f"{100 * row.dropped:.2g}% dropped"] if row.dropped else []
    return ", ".join(part for part in parts if part not in ("-", "- labels"))


def _text(cell: Cell, detailed: bool) -> Text:
    text = _plain(cell.value)
    if cell.detail and detailed:
        text.append(f"\n{cell.detail}", "dim")
    return text


def _published() -> Table:
    table = _empty(("model", "formula", "constant", "source"), [None] * 4)
    for row in published.ROWS:
        constant = "-" if row.constant is None else f"{row.constant:g}"
        table.add_row(*map(_plain, (row.model, row.formula, constant, row.source)))
    return table
