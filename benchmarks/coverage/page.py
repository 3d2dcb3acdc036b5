"""The page of reproduced tables and figures, each with its state and its command.

``python -m benchmarks coverage --markdown > benchmarks/coverage/COVERAGE.md`` writes the page that
is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.coverage import entries as listed
from benchmarks.coverage.entries import Entry
from benchmarks.coverage.judge import STATES, Answer, Source, answers
from benchmarks.published.compare import NOT_RUN, OUTCOMES
from orbits.runs.cli import called
from orbits.runs.naming import counted
from orbits.runs.result import grouped
from orbits.runs.table import Column, Table, Value

TITLE = "Tables and figures of the papers"
RULE = (
    "A check is a printed number, or what a figure or text says of two rows, judged over three or "
    "more seeds of kept results as in reports: by the difference to the table's baseline, since "
    "our models are smaller. Contradicted: more checks are than chance would let. Reproduced: not "
    "that, and at least half agree. Inconclusive: neither, or its checks do not answer it, for "
    "the reason beside them; and a check on which runs disagree. Checks at several lengths of one "
    "training are not independent, though they are counted as if they were. All of it is at "
    "reduced scale, but for what a step costs."
)
COLUMNS = (
    Column("what"),
    Column("shows", leaves=2),
    Column("state"),
    Column("checks or reason"),
    Column("runs", wide=True),
    Column("command", leaves=1),
)


@dataclass(frozen=True)
class Coverage:
    """The page as data.

    Attributes:
        summary: Numbers of entries in each state, in a sentence.
        tables: One per paper.
    """

    summary: str
    tables: Sequence[Table]

    def record(self) -> dict[str, Any]:
        """Return the page as plain data, a record per row by the headings of its columns."""
        rows = [
            {"paper": table.title}
            | {x.heading: value.text for x, value in zip(table.columns, row, strict=True)}
            for table in self.tables
            for row in table.rows
        ]
        return {"summary": self.summary, "rows": rows}

    def to_text(self) -> str:
        """Return the page for a terminal."""
        parts = [self.summary, RULE, *(table.to_text() for table in self.tables)]
        return "\n\n".join(part.rstrip("\n") for part in parts)

    def to_markdown(self) -> str:
        """Return the page as Markdown."""
        parts = [f"# {TITLE}\n", f"{self.summary}\n", f"{RULE}\n"]
        return "\n".join([*parts, *(table.to_markdown() for table in self.tables)])


def coverage(sources: Sequence[Source]) -> Coverage:
    """Return the page of some results."""
    known = listed.load()
    found = answers(known, sources)
    own = [name for name, entry in known.items() if not entry.same_as]
    counts = Counter(found[name].state for name in own)
    said = ", ".join(f"{counts[state]} {state}" for state in STATES)
    by_paper = grouped(known.values(), lambda entry: entry.paper)
    tables = [
        Table(
            paper,
            COLUMNS,
            [_row(known, entry, found[entry.name]) for entry in entries],
            _hours({run for entry in entries for run in found[entry.name].runs}, sources),
        )
        for paper, entries in by_paper.items()
    ]
    more = f", and {len(known) - len(own)} that print the same as one of them"
    return Coverage(f"Of {len(own)} tables and figures{more}: {said}.", tables)


def _hours(runs: Collection[str], sources: Sequence[Source]) -> str:
    """Say how long the runs took that judge a paper; cells that several share count once."""
    of_cells = {
        result.cell: result.cpu_s
        for source in sources
        if source.name in runs
        for result in source.results
    }
    if not of_cells:
        return ""
    return (
        f"Judged by {counted(len(runs), 'run')}: {sum(of_cells.values()) / 3600:.1f} CPU hours in "
        "all, cells that they share counted once."
    )


def _row(known: Mapping[str, Entry], entry: Entry, answer: Answer) -> list[Value]:
    own = known.get(entry.same_as, entry)
    command = called(own.command) if own.command else "-"
    texts = (entry.place, entry.shows, answer.state, _reason(entry, own, answer))
    runs = Value(", ".join(answer.runs) or "-", kind="name")
    return [*(Value(text, kind="name") for text in texts), runs, Value(command, kind="formula")]


def _reason(entry: Entry, own: Entry, answer: Answer) -> str:
    """Return the counts of checks and what limits them, or why there are none."""
    parts = [f"as {entry.same_as}"] if entry.same_as else []
    if answer.state == NOT_RUN:
        parts.append(own.why or "no run has three seeds of it")
    else:
        parts.append(", ".join(f"{answer.counts[x]} {x}" for x in OUTCOMES if answer.counts.get(x)))
        parts += [text for text in (own.unsettled, own.remark) if text]
        if own.larger:
            parts.append(f"would have to be larger: {own.larger}")
    return "; ".join(parts)
