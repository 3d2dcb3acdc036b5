"""Differences in extrapolation between language models: paired by seed, Holm-corrected."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.language.base import measured
from orbits.runs.result import Result
from orbits.runs.statistics import LEVEL, Comparison, compare
from orbits.runs.table import Column, Table, Value, by_variant
from orbits.runs.verdict import box

BASELINE = "softmax"
METRICS = ("loss@1x", "rise@8x", "loss@8x")
"""Compared metrics: at the length of training, and at the longest length of the papers."""
Pair = tuple[str, str]
STATES = {"off": False, "on": True}
CAPTION = (
    "Mean difference over the seeds that a pair shares [95% by Student's t, of this pair alone]; "
    "its p value, and that after Holm's correction for the {} pairs of a column. A difference is "
    f"claimed where the corrected one is below {LEVEL:g}."
)


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
    caption = CAPTION.format(max(map(len, families.values())))
    return Table(f"Differences, seed by seed, dynamic NTK {ntk}", columns, body, caption)


def from_baseline(results: Sequence[Result], ntk: str, metric: str) -> dict[str, Comparison]:
    """Return each variant less softmax, with the p values of the table's column."""
    _, families = _families(results, ntk, (metric,))
    return {one: each for (one, other), each in families[metric].items() if other == BASELINE}


def _families(
    results: Sequence[Result], ntk: str, metrics: Sequence[str] = METRICS
) -> tuple[list[Pair], dict[str, dict[Pair, Comparison]]]:
    """Return the pairs that are compared, and their comparisons in each metric, one family each."""
    found = measured(results, ntk=STATES[ntk])
    variants = list(dict.fromkeys(result.case.variant for result in found))
    pairs = [(one, BASELINE) for one in variants if one != BASELINE and BASELINE in variants]
    for one in variants:
        always = re.sub(r", off to step \d+$", "", one)
        pairs += [(one, always)] if always != one and always in variants else []
    families = {}
    for metric in metrics:
        values = by_variant(found, metric)
        known = {pair: (values[pair[0]], values[pair[1]]) for pair in pairs if {*pair} <= {*values}}
        families[metric] = compare(known)
    return pairs, families
