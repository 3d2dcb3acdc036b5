"""Comparison of attentions by the power they continue orbits by, seed by seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from benchmarks.implied.scores import Row, bins, laws_of, models, rows
from orbits.runs.at_once import Compared, at_once
from orbits.runs.result import Result, grouped
from orbits.runs.statistics import MINIMUM_SEEDS, Comparison, compare
from orbits.runs.study import Study
from orbits.runs.table import Column, Table, Value
from orbits.runs.verdict import PAIRS, box, signed
from worldmodel.probes.implied.names import in_words

TITLE = "Differences between attentions, seed by seed"
SHARE = "S"
OF = " of the exponents along continued orbits (and of S)"
WHICH = (
    f"Pairs of attentions that were trained in one world, with {MINIMUM_SEEDS} common seeds or "
    "more."
)
Pair = tuple[Row, Row]
Read = Callable[[Row], Mapping[int | None, float]]


def all_at_once(study: Study, results: Sequence[Result]) -> Compared:
    """Return all attentions of each world at once: a measure for each kind of prompts."""
    found = rows(results)
    worlds = {
        f"trained in the world of {mine[0].trained_in}": {row.variant: row for row in mine}
        for mine in _by_world(found).values()
    }
    columns = _columns(found).items()
    measures = {x if x == SHARE else f"exponent on {x}": read for x, read in columns}
    return at_once("", worlds, measures)


def table(found: Sequence[Row]) -> Table:
    """Return a row for each pair of attentions and world: a column for each kind of prompts."""
    pairs, families = _families(found)
    body = [
        [_name(pair), Value(pair[0].trained_in, kind="name"), *boxes]
        for number, pair in enumerate(pairs)
        if any(number in family for family in families.values())
        for boxes in [[box(family.get(number), ".3f") for family in families.values()]]
    ]
    columns = [Column("pair"), Column("trained in"), *map(Column, families)]
    caption = f"{PAIRS.format(OF, _count(families))}. {WHICH}"
    return Table(TITLE, columns, body, caption)


def sentences(found: Sequence[Row]) -> list[str]:
    """Say which differences are claimed; nothing where no pair can be compared."""
    pairs, families = _families(found)
    if not _count(families):
        return []
    compared = f"Of {_count(families)} pairs of attentions, each in {len(families)} measures, "
    claims = [
        f"{_name(pair).text} in the world of {pair[0].trained_in} {_words(name)} by "
        + signed(each, ".3f")
        for name, family in families.items()
        for number, pair in enumerate(pairs)
        if (each := family.get(number)) is not None and each.differs
    ]
    if not claims:
        return [f"{compared}none is claimed to differ (paired by seed, Holm)."]
    return [f"{compared}these differ (paired by seed, Holm): {'; '.join(claims)}."]


def _families(found: Sequence[Row]) -> tuple[list[Pair], dict[str, dict[int, Comparison]]]:
    """Return the pairs, and the comparisons of each column by the number of the pair."""
    pairs = [x for mine in _by_world(found).values() for x in itertools.combinations(mine, 2)]
    families = {
        name: compare({at: (read(one), read(other)) for at, (one, other) in enumerate(pairs)})
        for name, read in _columns(found).items()
    }
    return pairs, {name: family for name, family in families.items() if family}


def _by_world(found: Sequence[Row]) -> dict[str | None, list[Row]]:
    """Return the models that were trained in each world."""
    return grouped(itertools.chain(*models(found).values()), lambda row: row.world)


def _columns(found: Sequence[Row]) -> dict[str, Read]:
    """Return readers of a row's values: prompts in the box, own ones outside, and the share."""
    shifts = dict.fromkeys(s for row in found for _, s in row.found if s is not None)
    truth = bins(found)
    return {
        **{in_words(law): _inside(law) for law in laws_of(found)},
        **{shift.replace("_", " "): _outside(shift) for shift in shifts},
        SHARE: lambda row: row.shares(truth),
    }


def _inside(law: str) -> Read:
    """Return a function that reads the exponent on a law's prompts."""
    return lambda row: row.by_seed((law, None))


def _outside(shift: str) -> Read:
    """Return a function that reads the exponent on shifted prompts of the training's own law."""
    return lambda row: row.by_seed((str(row.world), shift))


def _count(families: Mapping[str, Mapping[int, Comparison]]) -> int:
    return max(map(len, families.values()), default=0)


def _name(pair: Pair) -> Value:
    one, other = pair
    return Value(f"{one.variant} - {other.variant}", kind="name")


def _words(column: str) -> str:
    return "in S" if column == SHARE else f"on {column} prompts"
