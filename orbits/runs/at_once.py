"""Table and sentences of models that were trained alike, all compared at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from orbits.runs.statistics import LEVEL, all_at_once, holm
from orbits.runs.table import NOTHING, Column, Table, Value

TITLE = "Models that were trained alike, all at once"
CAPTION = (
    "The p value of no difference between any of three or more models, and that after Holm's "
    "correction for the rows of a column: values are permuted between models within each seed, "
    "and the spread of the models' means is compared. It sees what no pair shows after "
    "correction, and does not say which models differ."
)
Row = TypeVar("Row")


def at_once(
    of: str,
    groups: Mapping[str, Sequence[Row]],
    measures: Mapping[str, Callable[[Row], Mapping[int | None, float]]],
) -> tuple[Table, list[str]]:
    """Compare groups of models in several measures; each measure is a family.

    Args:
        of: What is compared, the end of the title; empty for none.
        groups: Rows that were trained alike, by the name of the group.
        measures: Functions that return the values of a row by seed, by heading.

    Returns:
        A table with a row for each group that can be compared
        (:func:`orbits.runs.statistics.all_at_once`), and a sentence for each that differs.
    """
    families = {heading: _family(groups, read) for heading, read in measures.items()}
    body, claims = [], []
    for name, rows in groups.items():
        found = {heading: family[name] for heading, family in families.items() if name in family}
        if not found:
            continue
        boxes = [_box(*found[heading]) if heading in found else NOTHING for heading in families]
        body.append([Value(name, kind="name"), Value(str(len(rows))), *boxes])
        differ = [f"{x} (p {_p(p)})" for x, (_, p) in found.items() if p < LEVEL]
        if differ:
            claims.append(f"{name}: all {len(rows)} at once differ in {', '.join(differ)}.")
    columns = [Column("trained alike"), Column("models"), *map(Column, families)]
    return Table(f"{TITLE}: {of}" if of else TITLE, columns, body, CAPTION), claims


def _family(
    groups: Mapping[str, Sequence[Row]], read: Callable[[Row], Mapping[int | None, float]]
) -> dict[str, tuple[float, float]]:
    """Return the p value of each group, and that after correction for their number."""
    tested = {
        name: p
        for name, rows in groups.items()
        if (p := all_at_once([read(row) for row in rows])) is not None
    }
    return dict(
        zip(tested, zip(tested.values(), holm([*tested.values()]), strict=True), strict=True)
    )


def _box(p: float, corrected: float) -> Value:
    return Value(f"p {_p(p)}", f"corrected {_p(corrected)}", order=p)


def _p(p: float) -> str:
    return f"{p:.2g}" if p < 0.1 else f"{p:.2f}"
