"""The next-point probe: how well a world model predicts one step, also outside its training box.

The exam of force heads (:mod:`orbits.shifts`) asks what a label taught; this asks the world model
itself, without a label or a head. Of each shift that its world can make it predicts the second half
of held-out sequences, each point from the true ones before it: nats, the error in AU, the share of
the kick behind a step that is missed, and the exponent of the distance that these kicks have along
each orbit.

Beside it stand an orbit fit to the same points, a linear filter and two tables of orbits from the
model's own world (one pastes an orbit, one takes steps after similar pieces), cubic extrapolation,
the truth in bins and the model's untrained twin.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orbits import shifts
from orbits.arithmetic import Array
from orbits.implied.one_step import OneStep
from orbits.protocols import Protocol
from orbits.runs import trainings
from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Metric, Result, grouped
from orbits.runs.statistics import Interval
from orbits.visible import check_shifted
from worldmodel.controls.names import FILTER, FIT, PIECES
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.implied import asked, references
from worldmodel.probes.implied.names import SHIFT
from worldmodel.probes.implied.names import in_words as _law
from worldmodel.probes.looks import own_setting, trained_models, trained_on
from worldmodel.probes.motion import dots
from worldmodel.probes.motion.held_out import (
    HeldOutSystems,
    batches,
    joined,
    mean_of,
    medians,
    next_points,
)
from worldmodel.probes.settings import Settings

BOX = "none"
"""The setting of the training box itself."""
FITTED = 150
"""Sequences at most whose orbits are fitted, a dozen times each."""

CAPTION = (
    "Root mean square error of the kick that a predicted step implies, over that of the true "
    "kicks: 1 is as wrong as no kick at all. One step at a time from true places, in the training "
    "box and in each shift of the exam; mean of three trainings or more with its 95% interval, of "
    "two from one to the other, of one and of controls over sequences. Dashed: the linear filter "
    "(linear autoregression). What lies beyond a panel is at its edge."
)


class NextPoint(Probe):
    """The next-point probe."""

    name = "next_point"
    about = (
        "One predicted step in the training box and in each shift of the exam: nats, error, the "
        "share of the kick that is missed and its exponent along orbits. No label, no head."
    )
    uses = ("n_sequences", "seeds", "data_seed")
    files = ("shift_file",)
    asks = ("predict_next",)
    of = ("NextTokenModel",)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why a checkpoint cannot be asked, or not in a shift of one's own; or None."""
        world = dataclasses.replace(checkpoint.protocol, label_leak=0)
        if (reason := asked.refusal(world)) is not None or settings.shift_file is None:
            return reason
        try:
            for shift in shifts.load(settings.shift_file):
                check_shifted(dataclasses.replace(world, shift=shift))
        except ValueError as error:
            return str(error)
        return None

    def version(self, checkpoint: Checkpoint) -> int:
        """Return 2; version 1 had no steps after pieces of orbits."""
        return 2

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the measures in the box and in each shift, and those of the controls."""
        world = checkpoint.protocol
        asked_of = settings.data_seed, settings.n_sequences, settings.shift_file
        twins = checkpoint.twins(settings.seeds[0])
        models: list[tuple[str | None, Any]] = [(None, checkpoint.model), *twins.items()]
        outcomes: list[Outcome] = []
        for name, test in pieces.progress(list(_worlds(world, *asked_of))):
            steps = OneStep(test.protocol, test.world, (test.n_prompt - 1) // 2)
            for arm, model in models:
                found = _measured(test, steps, medians(model, test)) | _nats(model, test)
                outcomes.append(Outcome(found, arm=arm, setting={SHIFT: name}))
        return [*outcomes, *_controls(world, checkpoint.trained_on, *asked_of)]

    def answers(self, results: Sequence[Result]) -> list[str]:
        """Return what one step costs each model in the box and outside it, beside the controls."""
        models = trained_models(results).items()
        return [x for name, mine in models for x in _sentences(name, mine, results)]

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the share of the kick that is missed, in the box and in each shift."""
        path = out / "figures" / "next_point_missed.png"
        panels = [
            dots.Panel(_in_words(shift), {"missed": _missed_in(shift)}, level=FILTER, log=True)
            for shift in _by_shift(results)
        ]
        return [Picture(CAPTION, [dots.draw(results, panels, path)])]


def _in_words(shift: str) -> str:
    return "in the training box" if shift == BOX else shift.replace("_", " ")


def _missed_in(shift: str) -> dots.Value:
    """Return the share of the kick that results of one shift miss."""

    def missed(result: Result) -> Metric | None:
        same = own_setting(result).get(SHIFT) == shift
        return result.metrics.get("missed") if same else None

    return missed


def _worlds(
    protocol: Protocol, seed: int, n: int, file: str | None = None
) -> Iterator[tuple[str, HeldOutSystems]]:
    """Yield the box and the shifts that a protocol can make, with their held-out systems.

    Those of a file of one's own were tried before.
    """
    rows = np.arange(n)
    yield BOX, HeldOutSystems(protocol, protocol.systems(seed, "test", rows))
    for name, shift in shifts.catalogue(file).items():
        # A law need not bind closer orbits, nor a protocol have other time steps.
        with contextlib.suppress(ValueError):
            shifted = dataclasses.replace(protocol, shift=shift)
            check_shifted(shifted)
            yield name, HeldOutSystems(shifted, shifted.systems(seed, "test", rows, "force"))


# The same for all checkpoints of a world, and slow: orbits are fitted.
@functools.lru_cache(maxsize=1)
def _controls(
    protocol: Protocol, trained_on: Protocol, seed: int, n: int, file: str | None
) -> tuple[Outcome, ...]:
    """Return the measures of the references in the box and in each shift."""
    outcomes = []
    for name, test in _worlds(protocol, seed, n, file):
        some = HeldOutSystems(test.protocol, test.world.rows(np.arange(min(FITTED, n))))
        asked = [(test, *each) for each in references.truths(test)]
        asked += [
            (test if len(points) == n else some, who, arm, points)
            for who, arm, points in references.next_points(test, some, trained_on)
        ]
        for systems, who, arm, points in asked:
            steps = OneStep(systems.protocol, systems.world, (systems.n_prompt - 1) // 2)
            found = _measured(systems, steps, points)
            outcomes.append(Outcome(found, variant=who, arm=arm, setting={SHIFT: name}))
    return tuple(outcomes)


def _measured(test: HeldOutSystems, steps: OneStep, points: Array) -> dict[str, Interval]:
    """Return the errors and the law of predicted rows [N, T, 2] in AU."""
    errors = test.errors(points)
    return {
        "missed": steps.missed(points, test.batch["coordinates"]),
        "exponent_within": steps.exponent(points),
        "planet_error": mean_of(errors["planet"]),
        "star_error": mean_of(errors["star"]),
    }


def _nats(model: object, test: HeldOutSystems) -> dict[str, Interval]:
    """Return the nats of a next point's two bins; nothing of a model without a distribution."""
    parts = [
        next_points(model, {k: v[rows] for k, v in test.batch.items()}) for rows in batches(test)
    ]
    found = joined(parts)
    return {"nll": mean_of(found["nll"][:, test.n_prompt :])} if "nll" in found else {}


def _sentences(name: str, mine: Sequence[Result], results: Sequence[Result]) -> list[str]:
    """Say what a model misses in its box and in shifts: that of least, of most, those of a file."""
    missed = {k: [x.metrics["missed"] for x in some] for k, some in _by_shift(mine).items()}
    law = mine[0].case.law
    # A filter and pieces are those of the model's own world.
    results = [x for x in results if trained_on(x) == trained_on(mine[0])]
    box = "its training box"
    if law is not None and law != trained_on(mine[0]):
        box = f"the box of its training, in the world of {_law(law)}"
    words = f"{name} misses {trainings.words(missed.pop(BOX))} of the kick of a step in {box}"
    # Those of a file may lie inside the box.
    files = [
        f"{name} misses {trainings.words(missed.pop(x))} of it in the shift {_in_words(x)} "
        f"({_beside(results, x)})."
        for x in [*missed]
        if x not in shifts.names()
    ]
    if not missed:
        return [f"{words} ({_beside(results, BOX)}); its world makes no shift of the exam.", *files]
    order = sorted(missed, key=lambda shift: trainings.together(missed[shift]).value)
    least, most = (trainings.words(missed[shift]) for shift in (order[0], order[-1]))
    beside = (f"{shifts.get(x).about} ({_beside(results, x)})" for x in (order[0], order[-1]))
    return [
        f"{words}, outside it {least} to {most} ({_beside(results, BOX)} in the box).",
        f"{name} misses least with {', and most with '.join(beside)}.",
        *files,
    ]


def _beside(results: Sequence[Result], shift: str) -> str:
    """Return what the references miss in a shift, in words."""
    there = _by_shift(results)[shift]
    of = {x.case.variant: x.metrics["missed"].value for x in there}
    named = [f"{who} {of[who]:.2f}" for who in (FIT, FILTER, PIECES) if who in of]
    return ", ".join(named)


def _by_shift(results: Sequence[Result]) -> dict[str, list[Result]]:
    return grouped(results, lambda result: str(own_setting(result)[SHIFT]))


PROBE = NextPoint()
"""The probe ``next_point``."""
