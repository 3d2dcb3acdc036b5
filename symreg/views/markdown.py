"""The leaderboard as Markdown (GitHub's tables).

It leaves out how long the searches took, so that the same cells give the same file: a run that
was killed and resumed ends with the table of one that was not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from orbits import untrusted
from symreg import published
from symreg.result_rows import Row
from symreg.views import words
from symreg.views.columns import HEADINGS, NOTHING, Cell, cells, notes, tables
from symreg.views.words import Line

SHOWN = HEADINGS[:-1]  # all but the time


def to_markdown(rows: Sequence[Row], law: str = "newton", lines: Iterable[Line] = ()) -> str:
    """Return one table per task and protocol, one more for its controls, and the notes.

    Args:
        rows: Rows of one law, in order; see :func:`symreg.result_rows.rows`.
        law: The true law.
        lines: The result lines, whose failures are listed with their errors.
    """
    blocks = [escape(words.truth(law))]
    for title, contestants, controls in tables(rows):
        members = [*contestants, *controls]
        blocks += [f"**Warning: {escape(text)}**" for text in words.warnings(members)]
        for part, suffix in ((contestants, ""), (controls, ", controls")):
            if part:
                body = [line for row in part for line in _lines(row)]
                blocks.append(f"### {escape(title)}{suffix}\n\n" + _table(SHOWN, body))
        blocks.append(_list(words.alike(members, law)))
    blocks.append(f"### {words.PUBLISHED_TITLE}\n\n{_published()}\n\n{words.PUBLISHED_NOTE}")
    if failed := words.failures(lines):
        blocks.append(f"### Failed cells\n\n{_list(failed)}")
    blocks.append(f"### Notes\n\n{_list([*words.READING, *notes(SHOWN)])}")
    return "\n\n".join(block for block in blocks if block) + "\n"


def escape(text: str) -> str:
    """Return text that Markdown and the HTML within it show as it is."""
    return untrusted.markdown(text, marks=r"[\\`*_~$#|\[\]]")


def _code(text: str) -> str:
    # Inside a code span nothing can be escaped, so what would end it or its cell is no code.
    return escape(text) if re.search(r"[`|\\]", text) else f"`{text}`"


def _cell(cell: Cell) -> str:
    if cell == NOTHING:
        return cell.value
    value = cell.value
    if cell.kind != "figure":
        value = _code(value) if cell.kind == "formula" else escape(value)
    return f"{value} {cell.detail}".strip()


def _lines(row: Row) -> list[list[str]]:
    """Return one line per engine; the row's own cells are written once."""
    both = [([_cell(c) for c in own], [_cell(c) for c in law[:-1]]) for own, law in cells(row)]
    return [(own if i == 0 else [""] * len(own)) + law for i, (own, law) in enumerate(both)]


def _table(headings: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _published() -> str:
    body = [
        [escape(row.model), _code(row.formula), _number(row.constant), escape(row.source)]
        for row in published.ROWS
    ]
    return _table(("model", "formula", "constant", "source"), body)


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {escape(sentence)}" for sentence in sentences)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
