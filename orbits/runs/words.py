"""Explained words of a page: columns, metrics, and the words of the glossary that it uses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orbits.runs.result import Quantity
from orbits.runs.table import Column, Table

GLOSSARY = Path(__file__).parents[2] / "GLOSSARY.md"
"""The suite's glossary, in a checkout that has one; an installed package has none."""
ENTRY = re.compile(r"^\| (?P<names>[^|]+) \| (?P<meaning>[^|]+) \|$", re.M)


@dataclass(frozen=True)
class Word:
    """A word and its meaning.

    Attributes:
        name: The word, or several that mean the same.
        meaning: Meaning of the word.
    """

    name: str
    meaning: str


class Words:
    """The words of a page, each with an anchor that headings of its tables link to."""

    def __init__(
        self, tables: Sequence[Table], metrics: Mapping[str, Quantity], glossary: Sequence[Word]
    ) -> None:
        """Collect the notes of columns, then metrics, then the glossary's words."""
        found = [Word(*note) for table in tables for note in table.notes]
        found += [Word(name, _meaning(quantity)) for name, quantity in metrics.items()]
        self.entries = list(dict.fromkeys([*found, *glossary]))
        """Words in the order of the page."""
        self._places = {word: place for place, word in enumerate(self.entries, 1)}
        self._noted = {
            (heading, word.meaning): word for word in found for heading in word.name.split(", ")
        }
        self._metrics = {name: Word(name, _meaning(of)) for name, of in metrics.items()}

    def anchor(self, column: Column) -> str:
        """Return the anchor of a column's meaning; empty where it is not explained."""
        metric = self._metrics.get(column.heading) or self._metrics.get(
            column.heading.partition("@")[0]
        )
        word = self._noted.get((column.heading, column.note)) if column.note else metric
        return "" if word is None else f"word-{self._places[word]}"


def entries(path: Path = GLOSSARY) -> list[Word]:
    """Return all words of the glossary, in its order; none where there is no such file."""
    if not path.is_file():
        return []
    rows = list(ENTRY.finditer(path.read_text(encoding="utf-8")))[1:]  # its heading
    return [Word(row["names"].strip(), row["meaning"].strip()) for row in rows]


def glossary_of(text: str, path: Path = GLOSSARY) -> list[Word]:
    """Return the words of the glossary that a text uses, in the glossary's order."""
    return [
        word
        for word in entries(path)
        if any(
            re.search(rf"(?<!\w){re.escape(name)}s?(?!\w)", text, re.I)
            for name in word.name.split(", ")
        )
    ]


def _meaning(quantity: Quantity) -> str:
    better = "" if quantity.direction == "none" else f"{quantity.direction} is better"
    remarks = ", ".join(filter(None, (quantity.unit, better)))
    return f"{quantity.about} ({remarks})" if remarks else quantity.about
