"""Tables and sentences of models that were trained alike, all compared at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from orbits.runs.statistics import LEVEL, Seeds, all_at_once, holm, least_p, ranked, reachable
from orbits.runs.table import NOTHING, Column, Table, Value

TITLE = "Models that were trained alike, all at once"
CAPTION = (
    "The p value of no difference between any of three or more models, and that after Holm's "
    "correction for the {}, by Friedman's test: models are ranked within each seed, and the spread "
    "of their mean ranks is compared with that of permuted ranks. It sees what no pair shows after "
    "correction, and does not say which models differ. Comparisons that could claim nothing after "
    "correction are left out."
)
Row = TypeVar("Row")
Compared = tuple[Table, list[str]]
"""A table, and the sentences of what differs."""


@dataclass(frozen=True)
class _Found:
    """A comparison of models.

    Attributes:
        models: Number of models.
        p: The p value of no difference.
        corrected: That after correction for the family.
        alone: The model without which no difference is shown; empty for none.
    """

    models: int
    p: float
    corrected: float
    alone: str = ""

    @property
    def differs(self) -> bool:
        return self.corrected < LEVEL

    @property
    def box(self) -> Value:
        return Value(f"p {_p(self.p)}", f"corrected {_p(self.corrected)}", order=self.p)

    @property
    def words(self) -> str:
        """The corrected p value in brackets."""
        return f"(p {_p(self.corrected)})"

    @property
    def without(self) -> str:
        """The clause of the model that makes the difference alone; empty for none."""
        return f"; without {self.alone} no difference is shown" if self.alone else ""


def at_once(
    of: str,
    groups: Mapping[str, Mapping[str, Row]],
    measures: Mapping[str, Callable[[Row], Seeds]],
) -> Compared:
    """Compare groups of models in several measures; each measure is a family.

    Args:
        of: What is compared, the end of the title; empty for none.
        groups: Rows that were trained alike by the names of their models, by the name of the group.
        measures: Functions that return the values of a row by seed, by heading.

    Returns:
        A table with a row for each group that can be compared (see :func:`in_each`), and a
        sentence for each that differs.
    """
    families = {
        heading: _family(
            {
                name: {model: read(row) for model, row in rows.items()}
                for name, rows in groups.items()
            }
        )
        for heading, read in measures.items()
    }
    body, claims = [], []
    for name, rows in groups.items():
        found = {heading: family[name] for heading, family in families.items() if name in family}
        if not found:
            continue
        boxes = [found[heading].box if heading in found else NOTHING for heading in families]
        body.append([Value(name, kind="name"), Value(str(len(rows))), *boxes])
        differ = {heading: each for heading, each in found.items() if each.differs}
        if differ:
            words = ", ".join(f"{heading} {each.words}" for heading, each in differ.items())
            by_one: dict[str, list[str]] = {}
            for heading, each in differ.items():
                by_one.setdefault(each.without, []).append(heading)
            words += "".join(f"{x} in {', '.join(where)}" for x, where in by_one.items() if x)
            claims.append(f"{name}: all {len(rows)} at once differ in {words}.")
    columns = [Column("trained alike"), Column("models"), *map(Column, families)]
    title = f"{TITLE}: {of}" if of else TITLE
    return Table(title, columns, body, CAPTION.format("rows of a column")), claims


def in_each(measures: Mapping[str, Mapping[str, Seeds]]) -> Compared:
    """Compare the models of several measures; all measures are one family.

    A comparison that cannot be claimed whatever its models do is left out, and does not count in
    the correction (:func:`orbits.runs.statistics.reachable`): with three seeds the least p value is
    (1 / k!)^2 of k models, 0.028 of three, which is below 0.05 alone but not as one of two; equal
    values, such as accuracies at 100%, raise it. Models must have been trained apart from one
    another: one that shares a part of its training with another is left out by the caller, and so
    are controls without seeds.

    Args:
        measures: The values of each model by seed, by measure.

    Returns:
        A table with a row for each measure in which models can be compared, and a sentence for each
        in which they differ, which says too if without the model of the most extreme ranks no
        difference is shown: one that learned nothing can make a difference alone.
    """
    found = _family(measures)
    body = [
        [Value(name, kind="name"), Value(str(each.models)), each.box]
        for name, each in found.items()
    ]
    claims = [
        f"{name}: all {each.models} at once differ {each.words}{each.without}."
        for name, each in found.items()
        if each.differs
    ]
    columns = [Column("measure"), Column("models"), Column("no difference")]
    return Table(TITLE, columns, body, CAPTION.format("rows")), claims


def _family(measures: Mapping[str, Mapping[str, Seeds]]) -> dict[str, _Found]:
    """Compare the models of each measure that can be claimed; p values are corrected for these."""
    least = {
        name: p
        for name, models in measures.items()
        if (p := least_p([*models.values()])) is not None
    }
    kept = [name for name, can in zip(least, reachable([*least.values()]), strict=True) if can]
    tested = {name: all_at_once([*measures[name].values()]) for name in kept}
    known = {name: p for name, p in tested.items() if p is not None}
    return {
        name: _Found(
            len(measures[name]), p, corrected, _alone(measures[name]) if corrected < LEVEL else ""
        )
        for (name, p), corrected in zip(known.items(), holm([*known.values()]), strict=True)
    }


def _alone(models: Mapping[str, Seeds]) -> str:
    """Return the model of the most extreme ranks if without it no difference is shown."""
    ranks = ranked([*models.values()])
    assert ranks is not None  # a difference was found
    means = ranks.mean(axis=1)
    farthest = [*models][int(np.argmax(np.abs(means - means.mean())))]
    others = [seeds for name, seeds in models.items() if name != farthest]
    least, p = least_p(others), all_at_once(others)
    could = least is not None and least < LEVEL
    return farthest if could and p is not None and p >= LEVEL else ""


def _p(p: float) -> str:
    return f"{p:.2g}" if p < 0.1 else f"{p:.2f}"
