"""Residuals exchanged between two systems that differ in their law alone, in models of many laws.

Models that were trained on one law have the probe ``exchange_law`` for it; here the law of the past
is one that the model has met, so that its continuation may follow what it is given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import training
from benchmarks.training_options import Job
from benchmarks.worlds.asked import Asked
from benchmarks.worlds.names import EXCHANGE, MIXTURE
from benchmarks.worlds.scores import ARMS
from orbits.laws.family import power_name
from orbits.mixture import Mixture
from orbits.protocols import Protocol
from orbits.runs.cell import Outcome
from orbits.runs.result import Result
from orbits.runs.table import NOTHING, Column, Table, Value, interval
from worldmodel.models.mixture import MixtureModel
from worldmodel.probes.implied.asked import in_words
from worldmodel.probes.implied.words import together
from worldmodel.probes.law import words
from worldmodel.probes.law.exchange import (
    CONTROLS,
    LAST_STEP,
    OTHER_LAW,
    SAME_LAW,
    WHOLE,
    ask,
)
from worldmodel.probes.law.exchange import (
    NOTHING as NO_DONOR,
)
from worldmodel.probes.law.exchange_law import references_of
from worldmodel.probes.law.pairs import Pairs, pairs

ROWS = ("last star", "last planet", LAST_STEP)
"""Rows that are exchanged, one set at a time."""
DONORS = (OTHER_LAW, SAME_LAW, *CONTROLS)
TITLE = "The law exchanged inside the model"
CAPTION = (
    "Change of the exponent of continuations, in units of the world's own change, once the "
    "residual stream at the end of a prompt is that of a donor: a system of another law in the "
    "same state; one of the own law whose masses pull as hard; another system of the own law; a "
    "step of the same length in a random direction. First row: the donor's own prompt is shown. "
    "Beyond: what the other law does more than the same law does, which alone is about the law."
)


def exchange(
    world: Mapping[str, Any],
    exponents: Sequence[float],
    n: int,
    pretrained: Path | None = None,
    job: Job | None = None,
) -> list[Outcome]:
    """Exchange residuals in a model; in one of random weights where there is a job.

    Args:
        world: The protocol's full configuration.
        exponents: Of the distance: the own law, then those of donors.
        n: Systems to choose pairs from.
        pretrained: The folder of the training.
        job: What the model would have been trained as.
    """
    model = training.trained_or_not(pretrained, job, MixtureModel)
    only = ROWS if pretrained is not None else (LAST_STEP,)
    return [
        dataclasses.replace(outcome, setting={"law": law, **outcome.setting})
        for law, pair in _pairs(world, exponents, n)
        for outcome in ask(model, pair, only)
    ]


def references(
    world: Mapping[str, Any], exponents: Sequence[float], n: int, mixture: Sequence[float]
) -> list[Outcome]:
    """Show the prompts of donors to what has no residual stream, and to the truth in bins."""
    protocol = Asked.of(world, [], [], n).protocol
    return [
        dataclasses.replace(outcome, variant=name, arm=arm, setting={"law": law, **outcome.setting})
        for law, pair in _pairs(world, exponents, n)
        for name, arm, found in references_of(pair, Mixture(protocol, tuple(mixture)))
        for outcome in found
    ]


def check(protocol: Protocol, exponents: Sequence[float], n: int) -> None:
    """Refuse laws of which too few systems have pairs, with a ValueError."""
    own, *others = map(power_name, (-x for x in exponents))
    if not others:
        raise ValueError(f"exchanged needs a law and another one, got {exponents[0]:g} alone")
    for other in others:
        pairs(protocol, own, other, 0, n)


def _pairs(world: Mapping[str, Any], exponents: Sequence[float], n: int) -> list[tuple[str, Pairs]]:
    protocol = Asked.of(world, [], [], n).protocol
    own, *others = (power_name(-x) for x in exponents)
    return [(other, pairs(protocol, own, other, 0, n)) for other in others]


def sentences(results: Sequence[Result]) -> list[str]:
    """Return a sentence for each model on the mixture and each law; nothing without an exchange."""
    found = [x for x in _of(results) if x.case.arm == MIXTURE]
    said = [
        line
        for name in dict.fromkeys(x.case.variant for x in found)
        for line in words.of_model(name, [x for x in found if x.case.variant == name])
    ]
    return [*said, words.UNIT] if said else []


def table(results: Sequence[Result]) -> Table:
    """Return what each donor changes, by model, law and place."""
    groups: dict[tuple[str, ...], dict[str, list[Result]]] = {}
    for result in _of(results):
        case, setting = result.case, result.case.setting
        who = f"{case.variant}, {case.arm}" if case.arm in ARMS else case.variant
        place = tuple(str(setting[x]) for x in ("law", "after", "rows"))
        groups.setdefault((who, *place), {}).setdefault(setting["donor"], []).append(result)
    rows = []
    for (who, law, after, at), donors in groups.items():
        where = "shown" if after == WHOLE else f"after {after}, {at}"
        boxes = [_box(donors.get(donor, []), "share_exponent") for donor in DONORS]
        beyond = _box(donors.get(OTHER_LAW, []), "share_law")
        rows.append([Value(who, kind="name"), Value(f"{in_words(law)}, {where}"), *boxes, beyond])
    headings = ("who", "given", *DONORS, "beyond")
    return Table(TITLE, [Column(x) for x in headings], rows, CAPTION)


def _of(results: Sequence[Result]) -> list[Result]:
    there = [x for x in results if x.ok and x.case.kind == EXCHANGE]
    return [x for x in there if x.case.setting["donor"] != NO_DONOR]


def _box(found: Sequence[Result], metric: str) -> Value:
    return interval(together(found, metric), ".2f") if found else NOTHING
