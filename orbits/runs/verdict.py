"""Verdicts: clauses that say how rows stand to one of them, and where no difference is shown."""

from __future__ import annotations

from collections.abc import Mapping

from orbits.runs.statistics import LEVEL, Comparison, Seeds, compare
from orbits.runs.table import NOTHING, Value, mean_over_seeds

PAIRS = (
    "Mean difference{} over the seeds that a pair shares [95% by Student's t, of this pair alone]; "
    "its p value, and that after Holm's correction for the {} pairs of a column. A difference is "
    f"claimed where the corrected one is below {LEVEL:g}"
)
"""Caption of a table of pairs, each a :func:`box`; differences of what, and their number, go in."""
MOST_NAMED = 3
"""Rows that a sentence names; of two sides, one less on each."""


def shown(
    values: Seeds, form: str = ".3g", unit: str = "", bounds: tuple[float, float] | None = None
) -> str:
    """Return the mean of trainings in words: with its interval, or each of few."""
    value = mean_over_seeds(values.values(), form, bounds)
    return f"{value.text}{unit} {value.detail}".strip()


def against(rows: Mapping[str, Seeds], other: str) -> dict[str, Comparison]:
    """Compare rows with one of them, seed by seed; p values are corrected for their number."""
    if other not in rows:
        return {}
    return compare({name: (rows[name], rows[other]) for name in rows if name != other})


def beside(found: Mapping[str, Comparison], other: str, form: str = ".3g", unit: str = "") -> str:
    """Name the rows that differ from another one, and say that the rest shows no difference.

    Returns:
        A clause without a full stop; empty where nothing was compared.
    """
    differing = sorted((x for x in found if found[x].differs), key=lambda x: found[x].difference)
    lower = [name for name in differing if found[name].difference.value <= 0]
    higher = [name for name in reversed(differing) if name not in lower]
    most = MOST_NAMED - bool(lower and higher)
    clauses: list[str] = []
    for word, side in (("lower", lower), ("higher", higher)):
        if side:
            than = "" if clauses else f" than {other}"  # said once
            clauses.append(f"{word}{than}: {_side(side, found, most, form, unit)}")
    if same := [name for name in found if name not in differing]:
        than = "" if clauses else f" from {other}"
        clauses.append(f"no difference{than} is shown for {_names(same)}")
    return "; ".join(clauses)


def span(values: Mapping[str, float], form: str = ".2f", rows: str = "rows") -> str:
    """Return a few values by name, or of more the least and the largest: ``1 to 2 in 4``."""
    if len(values) <= MOST_NAMED:
        return ", ".join(f"{name} {value:z{form}}" for name, value in values.items())
    least, most = min(values.values()), max(values.values())
    return f"{least:z{form}} to {most:z{form}} in {len(values)} {rows}"


def _side(
    names: list[str], found: Mapping[str, Comparison], most: int, form: str, unit: str
) -> str:
    said = [f"{_without_comma(name)} ({signed(found[name], form)}{unit})" for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(said) + more


def box(found: Comparison | None, form: str = ".3g") -> Value:
    """Return a comparison as a box of a table: its interval, and p before and after correction."""
    if found is None:
        return NOTHING
    mean, interval = signed(found, form).split(" ", 1)
    detail = f"{interval}, p {found.p:.2g}, corrected {found.adjusted:.2g}"
    return Value(mean, detail, order=found.difference.value)


def signed(each: Comparison, form: str = ".3g") -> str:
    """Return a difference with its sign and its interval."""
    value, low, high = (format(x, f"+{form}") for x in each.difference)
    return f"{value} [{low}, {high}]"


def _names(names: list[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{len(names)} others"
    return ", ".join(map(_without_comma, names))


def _without_comma(name: str) -> str:
    """Return a name such as ``lssar p=15, first stage first`` with its end in parentheses."""
    head, _, rest = name.partition(", ")
    return f"{head} ({rest})" if rest else name
