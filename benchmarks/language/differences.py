"""Differences in extrapolation between language models: paired by seed, Holm-corrected."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.language.base import measured
from orbits.runs.at_once import Compared, in_each
from orbits.runs.result import Result
from orbits.runs.statistics import Comparison, Seeds, compare
from orbits.runs.table import Column, Table, Value, by_variant
from orbits.runs.verdict import PAIRS, box

BASELINE = "softmax"
METRICS = ("loss@1x", "rise@8x", "loss@8x")
"""Compared metrics: at the length of training, and at the longest length of the papers."""
WORDS = {
    "loss@1x": "loss at the training length",
    "rise@8x": "rise of the loss to 8 times the training length",
    "loss@8x": "loss at 8 times the training length",
}
WINDOW = "sliding_window"
"""Softmax over as many keys as in training, which needs no extrapolation at all."""
LATE = r", off to step \d+$"
"""The end of the name of a variant that trains without re-weighting at first."""
Pair = tuple[str, str]
STATES = {"off": False, "on": True}


def differences(results: Sequence[Result], ntk: str) -> Table:
    """Compare each variant with softmax, and one switched on late with itself throughout."""
    pairs, families = _families(results, ntk)
    body = [
        [
            Value(f"{one} - {other}", kind="name"),
            *(box(family.get((one, other)), ".3f") for family in families.values()),
        ]
        for one, other in pairs
        if any((one, other) in family for family in families.values())
    ]
    columns = [Column("pair"), *(Column(metric) for metric in METRICS)]
    caption = f"{PAIRS.format('', max(map(len, families.values())))}."
    return Table(f"Differences, seed by seed, dynamic NTK {ntk}", columns, body, caption)


def from_baseline(results: Sequence[Result], ntk: str, metric: str) -> dict[str, Comparison]:
    """Return each variant less softmax, with the p values of the table's column."""
    _, families = _families(results, ntk, (metric,))
    return {one: each for (one, other), each in families[metric].items() if other == BASELINE}


def all_at_once(results: Sequence[Result]) -> Compared:
    """Compare all variants at once in each metric; NTK changes nothing at the training length."""
    measures = {}
    for state, ntk in STATES.items():
        found = measured(results, ntk=ntk)
        for metric in METRICS[1:] if ntk else METRICS:
            where = "" if metric == METRICS[0] else f", dynamic NTK {state}"
            measures[f"{WORDS[metric]}{where}"] = trained_apart(found, metric)
    return in_each(measures)


def trained_apart(found: Sequence[Result], metric: str) -> dict[str, Seeds]:
    """Return a metric by seed of the variants that share no training with others.

    One that was switched on late was trained as another until then, and softmax within a window
    of the training length is softmax in training.
    """
    return {
        name: seeds
        for name, seeds in by_variant(found, metric).items()
        if name != WINDOW and not re.search(LATE, name)
    }


def _families(
    results: Sequence[Result], ntk: str, metrics: Sequence[str] = METRICS
) -> tuple[list[Pair], dict[str, dict[Pair, Comparison]]]:
    """Return the pairs that are compared, and their comparisons in each metric, one family each."""
    found = measured(results, ntk=STATES[ntk])
    variants = list(dict.fromkeys(result.case.variant for result in found))
    pairs = [(one, BASELINE) for one in variants if one != BASELINE and BASELINE in variants]
    for one in variants:
        always = re.sub(LATE, "", one)
        pairs += [(one, always)] if always != one and always in variants else []
    families = {}
    for metric in metrics:
        values = by_variant(found, metric)
        known = {pair: (values[pair[0]], values[pair[1]]) for pair in pairs if {*pair} <= {*values}}
        families[metric] = compare(known)
    return pairs, families
