"""The tables and figures of the papers as data, with the studies that reproduce them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.published import tables as published
from benchmarks.study import MEASUREMENT
from orbits.runs.choices import check_choice

FOLDER = Path(__file__).parent
EXPECTATIONS = ("lower", "higher", "equal")


@dataclass(frozen=True)
class Claim:
    """A statement of a figure or a text about two rows of a study.

    Attributes:
        study: The study whose results can tell.
        metric: Its metric; ``loss`` stands for ``loss@4x`` too, and each is judged alone.
        row: The row that the claim is about.
        against: The row beside it.
        expect: Whether its values are ``lower``, ``higher`` or ``equal``.
        margin: Largest mean difference of rows that are equal.
        kind: The kind of the results.
        arm: Their arm.
        where: Fields and values that their case or its setting has.
        without: Fields and values that it must not have, one or a list.
        across: Fields of their settings in which the two rows may differ.
    """

    study: str
    metric: str
    row: str
    against: str
    expect: str
    margin: float | None = None
    kind: str = MEASUREMENT
    arm: str = "-"
    where: Mapping[str, Any] = field(default_factory=dict)
    without: Mapping[str, Any] = field(default_factory=dict)
    across: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_choice("expect", self.expect, EXPECTATIONS)
        if (self.margin is None) == (self.expect == "equal"):
            raise ValueError(f"a margin belongs to equal alone: expect {self.expect!r}")
        if isinstance(self.across, str):
            raise ValueError(f"across is a list of fields, got {self.across!r}")


@dataclass(frozen=True)
class Entry:
    """One table or figure.

    Attributes:
        paper: The paper.
        place: Name in the paper.
        shows: Content, in words.
        tables: Files of :mod:`benchmarks.published` with its numbers.
        repeats: Rows of them that another entry has too: judged there, they say nothing here.
        dependent: Metrics of them that follow from others, or from what a row is: not judged.
        claims: Statements without printed numbers.
        same_as: The name of an entry that has the same; empty for none.
        command: Arguments of ``python -m`` that run it; empty for none.
        why: Why it is not run, where it is not.
        remark: Reservation about its state, where it is judged.
        unsettled: Reason for which its checks do not answer it; its state is then inconclusive.
        larger: What would have to be larger for its checks to answer it.
    """

    paper: str
    place: str
    shows: str
    tables: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()
    dependent: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    same_as: str = ""
    command: str = ""
    why: str = ""
    remark: str = ""
    unsettled: str = ""
    larger: str = ""

    def __post_init__(self) -> None:
        rows = {row.row for table in self.tables for row in published.get(table).rows}
        if unknown := sorted(set(self.repeats) - rows):
            raise ValueError(f"repeats: no row {unknown[0]!r} in its tables")
        metrics = {
            x.name.partition("@")[0] for table in self.tables for x in published.get(table).metrics
        }
        if unknown := sorted(set(self.dependent) - metrics):
            raise ValueError(f"dependent: no metric {unknown[0]!r} in its tables")
        if not (self.tables or self.claims or self.same_as or self.why):
            raise ValueError("nothing is judged: give tables, claims, same_as, or why it is not")
        for name in ("unsettled", "larger"):
            if getattr(self, name) and not (self.tables or self.claims):
                raise ValueError(f"{name}: give tables or claims, which it is about")

    @property
    def name(self) -> str:
        """The paper and the place."""
        return f"{self.paper}, {self.place}"

    def asks(self, row: str, metric: str) -> bool:
        """Return whether a number of its tables is judged here."""
        return row not in self.repeats and metric.partition("@")[0] not in self.dependent


def load(path: Path = FOLDER / "entries.yaml") -> dict[str, Entry]:
    """Return all entries by name."""
    found: dict[str, Entry] = {}
    for paper, places in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        for place, given in places.items():
            try:
                entry = _entry(paper, place, **given)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path.name}, {paper}, {place}: {error}") from None
            found[entry.name] = entry
    for entry in found.values():
        if entry.same_as and (entry.same_as not in found or found[entry.same_as].same_as):
            raise ValueError(f"{path.name}, {entry.name}: no entry {entry.same_as!r} of its own")
    return found


def _entry(paper: str, place: str, claims: Any = (), **given: Any) -> Entry:
    about: dict[str, Any] = {k: x if isinstance(x, str) else tuple(x) for k, x in given.items()}
    return Entry(paper, place, claims=tuple(Claim(**claim) for claim in claims), **about)
