"""The tables of searches for NewtonBench's formulas: rates by engine, noise and level; and each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from benchmarks.search.formulas import BEYOND, LEVELS, SHARE_AGREED, STRICT, TOLERANCE
from orbits.runs.page import Section
from orbits.runs.result import Result, grouped
from orbits.runs.statistics import wilson
from orbits.runs.table import Column, Table, Value, number
from orbits.runs.untrusted import printable

FORMULA = "formula"
"""The kind of a result."""
TITLE = "Formulas of NewtonBench's twelve domains"
CAPTION = (
    f"Found: but for one factor the true formula within {TOLERANCE:.0%} at {SHARE_AGREED:.0%} of "
    "new points in the range and of those beyond it, where log-uniform variables go "
    f"{BEYOND:g} times as far at both ends. Numbers are compared and not forms: a formula that "
    "leaves out a term which hardly shows counts too; what powerlaw, which can say power laws "
    "alone, finds among others tells how often that is. The grammar of the engines has no inverse "
    "trigonometric functions, of which Snell's nine are. A search is given its points, and so "
    "bounds the fitting part of what NewtonBench asks."
)


def section(results: Sequence[Result]) -> Section | None:
    """Return the section of a report, or None where no formula was searched."""
    own = [result for result in results if result.case.kind == FORMULA]
    if not own:
        return None
    return Section(TITLE, [_rates(own), _each(own)], [CAPTION])


def sentences(results: Sequence[Result]) -> list[str]:
    """Say of each engine how many formulas it finds with the least noise and with the most."""
    own = [result for result in results if result.case.kind == FORMULA]
    if not own:
        return []
    noises = sorted({_noise(result) for result in own})
    asked = list(dict.fromkeys((noises[0], noises[-1])))
    how = " and ".join(
        f"with {100 * noise:g}% noise" if noise else "without noise" for noise in asked
    )
    said = []
    for engine in dict.fromkeys(str(result.case.get("engine")) for result in own):
        rates = []
        for noise in asked:
            members = [x for x in own if x.case.get("engine") == engine and _noise(x) == noise]
            _, low, high = wilson(_found(members), len(members))
            rates.append(f"{_found(members)} of {len(members)} [{low:.2f}, {high:.2f}]")
        said.append(f"{engine} {' and '.join(rates)}")
    return [
        f"Of NewtonBench's formulas that were searched, {how}, these are found: {'; '.join(said)}."
    ]


def _noise(result: Result) -> float:
    return float(str(result.case.get("noise")))


def _rates(results: Sequence[Result]) -> Table:
    columns = [
        *(Column("engine"), Column("noise", "of each value, relative")),
        *(Column(level, "formulas found / searched, failed searches included") for level in LEVELS),
        Column("all", "the same of all levels, with Wilson's 95% interval over searches"),
        Column(f"within {STRICT:.1%}", "those that are found so closely"),
        Column("in the range", "those that agree in the range that was searched"),
        Column("CPU s", "CPU seconds of a search and its scoring, median"),
    ]
    groups = grouped(results, lambda result: (str(result.case.get("engine")), _noise(result)))
    body = []
    for (engine, noise), members in sorted(groups.items()):
        _, low, high = wilson(_found(members), len(members))
        seconds = [result.cpu_s for result in members if result.ok]
        body.append(
            [
                Value(printable(engine), kind="name"),
                Value(f"{noise:g}", order=noise),
                *(_share([x for x in members if x.case.arm == level]) for level in LEVELS),
                dataclasses.replace(_share(members), detail=f"[{low:.2f}, {high:.2f}]"),
                _share(members, "found_strict"),
                _share(members, "found_in_range"),
                number(float(np.median(seconds)) if seconds else None, ".1f"),
            ]
        )
    return Table(TITLE, columns, body)


def _each(results: Sequence[Result]) -> Table:
    header = ("formula", "noise", "engine", "seed", "found", "in the range", "beyond", "answer")
    rows = [
        [
            Value(result.case.variant, kind="name"),
            Value(str(result.case.get("noise"))),
            Value(printable(str(result.case.get("engine"))), kind="name"),
            Value(str(result.case.seed)),
            Value(
                ("yes" if _found([result]) else "no") if result.ok else result.status, kind="name"
            ),
            number(result.value("agreed_in_range"), ".3f"),
            number(result.value("agreed_outside"), ".3f"),
            Value(printable(str(result.details.get("expression", "-")), 300), kind="formula"),
        ]
        for result in results
    ]
    columns = [Column(heading) for heading in header]
    return Table("Each formula", columns, rows, folded=True)


def _found(members: Sequence[Result], metric: str = "found") -> int:
    """Return the number of successes of some searches; a failed search has none."""
    return sum(result.value(metric) == 1 for result in members)


def _share(members: Sequence[Result], metric: str = "found") -> Value:
    if not members:
        return Value("-")
    found = _found(members, metric)
    return Value(f"{found}/{len(members)}", order=found / len(members))
