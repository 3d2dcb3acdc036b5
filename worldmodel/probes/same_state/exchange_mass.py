"""The exchange-mass probe: does a continuation follow a mass that the residual stream brings?

The probe exchange asks for the next place. This one lets the model go on: it is shown a past, and
its residual stream at some rows is that of a system with another planet's mass (m1) or star's (m2)
that is in the same state at the end of the prompt (:mod:`worldmodel.probes.same_state.pairs`). The
bodies' places there are the same, so that an exchange of the last step brings none.

Compared are the changes of both bodies' paths over six steps with the world's own. Much of that
change is no knowledge of a mass: the star of a heavier planet comes faster, and goes on faster.
``slope_mass`` is of the rest, for which straight lines through the last places do not account.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.controls.names import STRAIGHT
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.donors import LAST_STEP
from worldmodel.probes.motion.causal import PROBE as CAUSAL
from worldmodel.probes.motion.interventions import MASSES
from worldmodel.probes.same_state import figure, mass_words
from worldmodel.probes.same_state.exchange import VERSION, ask, references_of, whole
from worldmodel.probes.same_state.mass_change import MassChange
from worldmodel.probes.same_state.pairs import Pairs, of_masses
from worldmodel.probes.settings import Settings

Answers = tuple[str | None, str | None, list[Outcome]]


class ExchangeMass(Probe):
    """The exchange-mass probe."""

    name = "exchange_mass"
    about = (
        "How a continuation changes, in units of the world's own change, when the residual stream "
        "at some rows is that of a system with another mass in the same state."
    )
    uses = ("n_sequences", "seeds", "data_seed")
    of = ("NextTokenModel",)
    inside = "it exchanges residual streams inside a GPT of this package"

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why the probe cannot be used on a checkpoint, or None."""
        if reason := CAUSAL.refusal(checkpoint, settings):
            return reason
        if checkpoint.protocol.max_planets > 1:
            return "it exchanges rows of two bodies in turn; take a protocol of one planet"
        try:
            for changed in MASSES:
                _pairs(checkpoint, changed, settings)
        except ValueError as error:
            return str(error)
        return None

    def version(self, checkpoint: Checkpoint) -> int:
        """Return the version of exchanges between systems in the same state."""
        return VERSION

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the answers of the model, of its twin, and of controls without a model."""
        return [
            dataclasses.replace(
                outcome, variant=variant, arm=arm, setting={"changed": changed, **outcome.setting}
            )
            for changed in pieces.progress(MASSES)
            for variant, arm, some in _answers(checkpoint, changed, settings)
            for outcome in some
        ]

    def answers(self, results: Sequence[Result]) -> list[str]:
        """Return sentences on the share of a mass that each model's continuations take over."""
        return mass_words.answers(results)

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the shares by place in the model and rows."""
        return figure.draw_all(results, out, figure.MASS)


def _answers(checkpoint: Checkpoint, changed: str, settings: Settings) -> Iterator[Answers]:
    """Yield name, arm and answers for pairs that differ in one mass."""
    model, twin = checkpoint.model, checkpoint.untrained(settings.seeds[0])
    assert isinstance(model, NextTokenModel)  # refused otherwise
    assert isinstance(twin, NextTokenModel)
    pair = _pairs(checkpoint, changed, settings)
    change = MassChange(pair)
    yield None, None, ask(model, pair, change)
    yield None, "untrained", ask(twin, pair, change, (LAST_STEP,))
    yield from references_of(pair, change, checkpoint.trained_on)
    yield STRAIGHT, "control", whole(pair, change.straight, change)


def _pairs(checkpoint: Checkpoint, changed: str, settings: Settings) -> Pairs:
    protocol = dataclasses.replace(checkpoint.protocol, label_leak=0)
    return of_masses(protocol, changed, settings.data_seed, settings.n_sequences)


PROBE = ExchangeMass()
