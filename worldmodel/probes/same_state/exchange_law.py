"""The exchange-law probe: does the residual stream carry the law that a past obeyed?

The probe exchange puts in the residual of a system with another mass. This one puts in that of a
system which differs in its law alone and is in the same state at the end of the prompt, so that no
place is exchanged with it (:mod:`worldmodel.probes.same_state.pairs`), and lets the model go on:
does its path, and the power of the distance that this obeys along each orbit, change as the world's
would?

All rows after the embedding are the other prompt itself; a test is an exchange at one step while
the rest of the shown past stays. After the last block nothing but the first continued place
follows from what is exchanged. A partner of the own law that pulls as hard, because of its masses,
changes the strength and no law: only what exceeds its answer (``share_law``) is about the law.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from orbits import laws
from orbits.laws.family import UNBOUND, power_name
from orbits.protocols import Protocol
from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.donors import LAST_STEP
from worldmodel.probes.implied import asked
from worldmodel.probes.same_state import figure, words
from worldmodel.probes.same_state.exchange import VERSION, ask, references_of
from worldmodel.probes.same_state.law_change import LawChange
from worldmodel.probes.same_state.pairs import Pairs, of_laws
from worldmodel.probes.settings import Settings
from worldmodel.probes.verdicts import TRAINED

AWAY = 0.5
"""Distance of the other laws' exponents from the own one, on both sides."""


class ExchangeLaw(Probe):
    """The exchange-law probe."""

    name = "exchange_law"
    about = (
        "How a continuation changes, in units of the world's own change, when the residual stream "
        "at some rows is that of a system with another law in the same state."
    )
    uses = ("n_sequences", "seeds", "data_seed")
    of = ("NextTokenModel",)
    inside = "it exchanges residual streams inside a GPT of this package"

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why the probe cannot be used on a checkpoint, or None."""
        protocol = dataclasses.replace(checkpoint.protocol, label_leak=0)
        if reason := asked.refusal(protocol):
            return reason
        if not others(checkpoint.law):
            return (
                f"law {checkpoint.law!r} is no power of the distance times m1 m2, of which another "
                "one would be the pair; take --law newton"
            )
        try:
            for law in others(checkpoint.law):
                _pairs(protocol, law, settings)
        except ValueError as error:
            return str(error)
        return None

    def version(self, checkpoint: Checkpoint) -> int:
        """Return the version of exchanges between systems in the same state."""
        return VERSION

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the answers of the model, of its twin, and of controls without a model."""
        model, twin = checkpoint.model, checkpoint.untrained(settings.seeds[0])
        assert isinstance(model, NextTokenModel)  # refused otherwise
        assert isinstance(twin, NextTokenModel)
        outcomes = []
        for law in pieces.progress(others(checkpoint.law)):
            pair = _pairs(checkpoint.protocol, law, settings)
            change = LawChange(pair)
            found: list[tuple[str | None, str | None, list[Outcome]]] = [
                (None, None, ask(model, pair, change)),
                (None, "untrained", ask(twin, pair, change, (LAST_STEP,))),
                *references_of(pair, change, checkpoint.trained_on),
            ]
            outcomes += [
                dataclasses.replace(
                    outcome, variant=variant, arm=arm, setting={"law": law, **outcome.setting}
                )
                for variant, arm, some in found
                for outcome in some
            ]
        return outcomes

    def is_in_front(self, result: Result) -> bool:
        """Return whether a model was shown the past of the other law itself."""
        return result.case.arm in TRAINED and words.is_past(result)

    def answers(self, results: Sequence[Result]) -> list[str]:
        """Return sentences on the share of a law that each model's continuations take over."""
        return words.answers(results)

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the shares by place in the model and rows."""
        return figure.draw_all(results, out)


def others(law: str) -> tuple[str, ...]:
    """Return the laws that are paired with one; none where it is no power of r times m1 m2."""
    exponents = laws.get(law).exponents
    if exponents is None or (exponents["m1"], exponents["m2"]) != (1, 1):
        return ()
    powers = (-exponents["r"] - AWAY, -exponents["r"] + AWAY)
    return tuple(power_name(n) for n in powers if n < UNBOUND)


def _pairs(protocol: Protocol, law: str, settings: Settings) -> Pairs:
    return of_laws(protocol, protocol.law, law, settings.data_seed, settings.n_sequences)


PROBE = ExchangeLaw()
