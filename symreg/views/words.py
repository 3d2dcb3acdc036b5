"""What may be said about a leaderboard, and what must be said with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orbits import laws
from orbits.untrusted import printable
from symreg.controls import TRUTH
from symreg.points import NAMES
from symreg.result_rows import MINIMUM_SEEDS, Row
from symreg.views.columns import interval, seeds

Line = Mapping[str, Any]
EXPECTED_RATE = 0.9  # of searches on the true force should find the law

READING = (
    "What may be claimed from a row is about its exponents and their intervals. Two rows may be "
    "said to differ where the intervals are disjoint and each row has at least "
    f"{MINIMUM_SEEDS} seeds.",
    "A law rate counts searches on one set of predictions. It varies with the points drawn and "
    "with the engine's seed (in a small study the law picked changed between subsets of the same "
    "predictions while their exponents stood still) and is never a probability that a model "
    "knows the law.",
    "A failed cell stays in the denominator. A formula that does not describe the predictions "
    "found no law, which is not a wrong law.",
)
PUBLISHED_TITLE = "Published, not measured here"
PUBLISHED_NOTE = (
    "Under the paper's protocol and Newton's law: rows of another protocol or law do not compare "
    "with them. Printed rows have no interval and no number of seeds, so they are not ranked among "
    "the measured ones."
)


def truth(law: str) -> str:
    """Return the sentence that names the law a perfect model would have learnt."""
    known = laws.get(law)
    values = ", ".join(
        f"{name} = {value:.6g} {known.units[name]}".rstrip()
        for name, value in known.parameters.items()
    )
    sentence = f"True law: {law}, F = {known.expression}" + (f" with {values}" if values else "")
    if known.exponents is None:
        return (
            f"{sentence}. It is no power law: the exponents of a perfect model are those of the "
            f"control {TRUTH!r} on the same points."
        )
    exponents = ", ".join(f"{name} {known.exponents[name]:g}" for name in NAMES)
    return f"{sentence}. The exponents of a perfect model are {exponents}."


def name(row: Row, limit: int = 120) -> str:
    """Return the parts of a row's name that are stated, each cut to ``limit`` characters."""
    return ", ".join(_stated(row.model, row.arm, row.labels, limit))


def _stated(model: object, arm: object, labels: object, limit: int = 120) -> list[str]:
    parts = [printable("-" if part is None else part, limit) for part in (model, arm, labels)]
    if parts[2] != "-":
        parts[2] += " labels"
    return [part for part in parts if part != "-"]


def warnings(rows: Iterable[Row]) -> list[str]:
    """Say where the search does not even find the law in the true force."""
    return [
        f"{printable(entry.engine)} found the law in the true force itself in only {entry.found} "
        f"of {entry.total} searches: the search, not the models, limits its law rates here."
        for row in rows
        if row.is_control and row.model == TRUTH
        for entry in row.laws
        if entry.found / entry.total < EXPECTED_RATE
    ]


def alike(rows: Sequence[Row], law: str) -> list[str]:
    """Say for which rows the points leave the verdict open between laws."""
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
                fitted = " ".join(interval(row.exponents[variable], ".3f"))
                where = "contains" if inside else "excludes"
                parts.append(f"{variable} {fitted} {where} the law's {target:.4g}")
        if parts:
            few = "" if row.seeds >= MINIMUM_SEEDS else "; another training may differ"
            sentences.append(f"{name(row)} ({seeds(row)}{few}): exponent {'; '.join(parts)}.")
    return sentences


def failures(lines: Iterable[Line]) -> list[str]:
    """Return one sentence per failed cell: which it is, and its error."""
    sentences = []
    for line in {line["cell"]: line for line in lines}.values():
        if line["status"] != "failed":
            continue
        row = line["row"]
        parts = _stated(row["model"], row["arm"], row["labels"])
        parts += [] if row["seed"] is None else [f"seed {printable(row['seed'])}"]
        if line["kind"] == "law":
            parts.append(f"{printable(line.get('engine'))} search {printable(line.get('seed'))}")
        sentences.append(f"{', '.join(parts)}: {printable(line.get('error'), 300)}")
    return sentences


def lines_of(row: Row, lines: Iterable[Line], kind: str) -> list[Line]:
    """Return the lines of a row that succeeded; a cell that occurs twice counts once."""
    key = (row.task, row.protocol, row.model, row.arm, row.labels)
    found = {}
    for line in lines:
        its = line["row"]
        labels = "-" if its["labels"] is None else str(its["labels"])
        theirs = line["task"], its["protocol"], its["model"], its["arm"], labels
        if line["kind"] == kind and theirs == key:
            found[line["cell"]] = line
    return [line for line in found.values() if line["status"] == "ok"]
