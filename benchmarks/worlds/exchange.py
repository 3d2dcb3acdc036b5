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
from orbits import laws
from orbits.laws.family import power_name
from orbits.mixture import Mixture
from orbits.protocols import Protocol
from orbits.runs.cell import Outcome
from worldmodel.data.mixture import tell
from worldmodel.models.mixture import MixtureModel
from worldmodel.probes.donors import FIRST, LAST_STEP
from worldmodel.probes.same_state.exchange import ask, references_of
from worldmodel.probes.same_state.law_change import LawChange
from worldmodel.probes.same_state.pairs import Pairs, of_laws

ROWS = ("last star", "last planet", LAST_STEP)
"""Rows that are exchanged, one set at a time."""
ROWS_TOLD = (*ROWS, FIRST)
"""Rows of a model that is told the law, which is in the first row: an exchange must show it."""


def exchange(
    world: Mapping[str, Any],
    exponents: Sequence[float],
    n: int,
    pretrained: Path | None = None,
    job: Job | None = None,
) -> list[Outcome]:
    """Exchange residuals in a model; in one of random weights where there is a job.

    A model that is told the law of each sequence is the positive control: that a law goes over must
    be seen there.
    """
    model = training.trained_or_not(pretrained, job, MixtureModel)
    told = bool(model.hparams["told"])
    only = ROWS_TOLD if told else ROWS if pretrained is not None else (LAST_STEP,)
    outcomes = []
    for law, pair in _pairs(world, exponents, n):
        if told:
            for test in (pair.own, *pair.partners.values()):
                own = laws.get(test.protocol.law).exponents
                assert own is not None  # power laws
                tell(test.batch["coordinates"], own["r"])
        outcomes += [
            dataclasses.replace(outcome, setting={"law": law, **outcome.setting})
            for outcome in ask(model, pair, LawChange(pair), only)
        ]
    return outcomes


def references(
    world: Mapping[str, Any], exponents: Sequence[float], n: int, mixture: Sequence[float]
) -> list[Outcome]:
    """Show the prompts of donors to what has no residual stream, and to the truth in bins."""
    protocol = Asked.of(world, [], [], n).protocol
    return [
        dataclasses.replace(outcome, variant=name, arm=arm, setting={"law": law, **outcome.setting})
        for law, pair in _pairs(world, exponents, n)
        for name, arm, found in references_of(
            pair, LawChange(pair), Mixture(protocol, tuple(mixture))
        )
        for outcome in found
    ]


def check(protocol: Protocol, exponents: Sequence[float], n: int) -> None:
    """Refuse laws of which too few systems have pairs, with a ValueError."""
    own, *others = map(power_name, (-x for x in exponents))
    if not others:
        raise ValueError(f"exchanged needs a law and another one, got {exponents[0]:g} alone")
    for other in others:
        of_laws(protocol, own, other, 0, n)


def _pairs(world: Mapping[str, Any], exponents: Sequence[float], n: int) -> list[tuple[str, Pairs]]:
    protocol = Asked.of(world, [], [], n).protocol
    own, *others = (power_name(-x) for x in exponents)
    return [(other, of_laws(protocol, own, other, 0, n)) for other in others]
