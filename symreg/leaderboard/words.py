"""Sentences of a leaderboard: its claims and its warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from orbits import laws
from orbits.runs.statistics import MINIMUM_SEEDS
from orbits.runs.table import interval
from orbits.runs.untrusted import printable
from symreg.controls import NEAREST, TRUTH
from symreg.leaderboard.row import Row
from symreg.leaderboard.tables import seeds
from symreg.points import NAMES

EXPECTED_RATE = 0.9
"""Share of the searches on the true force that should find the law."""
ELSEWHERE = "A formula says nothing of what a model predicts at other points."

BESIDE = {"oracle", "ceiling", "control", "untrained"}
"""Parts of arms that are no trained model's."""
MOST_NAMED = 3
"""Rows that a verdict names."""

READING = (
    "What may be claimed from a row is about its exponents and their intervals. Rows that share "
    f"{MINIMUM_SEEDS} or more seeds are compared by their differences seed by seed, corrected for "
    "the number of comparisons; whether two intervals overlap does not tell.",
    "A law rate counts searches on one set of predictions. It varies with the points drawn and "
    "with the engine's seed (in a small study the law picked changed between subsets of the same "
    "predictions while their exponents stood still) and is never a probability that a model "
    "knows the law.",
    "A failed cell stays in the denominator. A formula that does not describe the predictions "
    "found no law, which is not a wrong law.",
)


def truth(law: str) -> str:
    """Return the sentence that names the law a perfect model would have learnt."""
    true_law = laws.get(law)
    values = ", ".join(
        f"{name} = {value:.6g} {true_law.units[name]}".rstrip()
        for name, value in true_law.parameters.items()
    )
    sentence = f"True law: {law}, F = {true_law.expression}" + (f" with {values}" if values else "")
    if true_law.exponents is None:
        return (
            f"{sentence}. It is no power law: the exponents of a perfect model are those of the "
            f"control {TRUTH!r} on the same points."
        )
    exponents = ", ".join(f"{name} {true_law.exponents[name]:g}" for name in NAMES)
    return f"{sentence}. The exponents of a perfect model are {exponents}."


def name(row: Row, limit: int = 120) -> str:
    """Return the parts of a row's name that are stated, each cut to ``limit`` characters."""
    parts = [printable(part, limit) for part in (row.model, row.arm, row.labels)]
    if parts[2] != "-":
        parts[2] += " labels"
    return ", ".join(part for part in parts if part != "-")


def verdict(rows: Sequence[Row], law: str) -> list[str]:
    """Say how often formulas of predictions are the law's, and how often of those that know none.

    That is the first control whose file stands among the models', or else a look-up table.
    """
    found = [row for row in rows if not row.is_control and row.laws]
    models = [row for row in found if not {*row.arm.split(", ")} & BESIDE] or found
    controls = [row for row in found if "control" in row.arm.split(", ") and row not in models]
    tables = [row for row in rows if row.is_control and row.model.startswith(NEAREST) and row.laws]
    if not models:
        return []
    said = f"Formulas of predictions that are the law {printable(law)} on the points given: "
    said += "; ".join(_found(row) for row in models[:MOST_NAMED])
    said += f" and {len(models) - MOST_NAMED} more rows" if len(models) > MOST_NAMED else ""
    if controls:
        said += f"; {_found(controls[0])}"
    elif tables:
        said += f"; of a look-up table of true forces, {_found(tables[0])}"
    return [f"{said}.", ELSEWHERE]


def _found(row: Row) -> str:
    """Return a row's name and how many of its searches found the law, by each engine."""
    engines: dict[str, list[str]] = {}
    for entry in row.laws:
        counted = f"{entry.found} of {entry.total} [{entry.low:.2f}, {entry.high:.2f}]"
        engines.setdefault(counted, []).append(printable(entry.engine))
    each = [f"{counted} by {' and '.join(names)}" for counted, names in engines.items()]
    return f"{name(row)} {', '.join(each)}"


def warnings(rows: Iterable[Row]) -> list[str]:
    """Return warnings where the search misses the law even in the true force."""
    return [
        f"{printable(entry.engine)} found the law in the true force itself in only {entry.found} "
        f"of {entry.total} searches: the search, not the models, limits its law rates here."
        for row in rows
        if row.is_control and row.model == TRUTH
        for entry in row.laws
        if entry.found / entry.total < EXPECTED_RATE
    ]


def alike(rows: Sequence[Row], law: str) -> list[str]:
    """Return sentences on rows whose points cannot tell two laws apart."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if row.alike:
            groups.setdefault(row.alike, []).append(name(row))
    return [
        f"{'Every row' if len(names) == len(rows) else '; '.join(names)}: on these points the "
        f"verdict cannot tell {law} from {', '.join(map(printable, others))}."
        for others, names in groups.items()
    ]


def claims(rows: Iterable[Row]) -> list[str]:
    """Return for each row with exponents the sentence that may be claimed from it.

    Without an interval (too few sequences) nothing may be claimed.
    """
    sentences = []
    for row in rows:
        parts = []
        for variable in NAMES:
            if variable in row.exponents and variable in row.law_exponents:
                _, low, high = row.exponents[variable]
                if not (math.isfinite(low) and math.isfinite(high)):
                    continue
                target = row.law_exponents[variable]
                room = 1e-6  # for rounding: perfect predictions have an interval of no width
                inside = low - room <= target <= high + room
                fitted = interval(row.exponents[variable], ".3f")
                where = "contains" if inside else "excludes"
                where = f"{where} the law's {target:.4g}"
                parts.append(f"{variable} {fitted.words} {where}")
        if parts:
            few = "" if row.seeds >= MINIMUM_SEEDS else "; another training may differ"
            sentences.append(f"{name(row)} ({seeds(row)}{few}): exponent {'; '.join(parts)}.")
    return sentences
