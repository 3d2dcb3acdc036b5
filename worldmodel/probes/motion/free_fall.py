"""The free-fall probe: do unlike bodies fall unlike in a world model's continuations?

Prompts are triples (:mod:`orbits.disturbed`): a binary and a third body that circles it, all
observed, by Newton's law, and of two kinds that pull on each other unlike their masses. Which body
is of which kind is not shown, but it can be inferred, since two bodies of unlike kinds fall unlike
towards the third. Continuations are asked how they fall themselves
(:mod:`orbits.implied.free_fall`).

Beside a model stand an observer who is told the kinds, one who infers them from the prompt, one who
believes in Newton's law and has the masses as free, a linear filter and a table of orbits from the
model's own world, and its untrained twin. A table of orbits of unlike bodies has their unlike fall:
what it has is memory's share. The truth with errors as large as the model's next step has says how
much its errors alone would hide.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from orbits import ceiling, protocols
from orbits.arithmetic import Array
from orbits.disturbed import OBSERVED
from orbits.implied.free_fall import attractions, followed
from orbits.implied.pulls import of_path
from orbits.implied.within import within
from orbits.kinds import fit_over_kinds
from orbits.motion import NEWTON
from orbits.protocols import Protocol
from orbits.runs import trainings
from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.implied import references
from worldmodel.probes.looks import own_setting, trained_models
from worldmodel.probes.motion import dots
from worldmodel.probes.motion.disturbed import IGNORANT, observed_for, of_prompt
from worldmodel.probes.motion.held_out import HeldOutSystems, continued, first_and_last
from worldmodel.probes.settings import Settings

BODIES = 3
WORLDS = tuple(
    name
    for name in protocols.names()
    if (disturbance := protocols.get(name).disturbance) and disturbance.triple
)
ASKED = "species"
"""The world whose bodies are of several kinds."""
MET = "fall_met"
INFERS = "orbit fit over the kinds"
WITH_ERRORS = "true orbit with the model's errors"
MEASURES = {
    "fall_met": "share of systems that fall\nas unlike as their bodies do",
    "pull_met": "share of pairs that pull\nby their own factor",
    "exponent_within": "exponent of the pair's orbit",
    "last_error": "error at the end, AU",
}
"""Titles of the panels by measure."""
CAPTION = (
    "Continuations of triples whose bodies are of two kinds: the share of systems whose unlike "
    "fall towards the third body is within half of the world's, and whose pair pulls by its own "
    "factor; the exponent of the pair's orbit is blind to both. Mean of three trainings or more "
    "with its 95% interval, of two from one to the other, of one and of controls over sequences. "
    "Dashed: the truth in bins. What lies beyond a panel is at its edge."
)


class FreeFall(Probe):
    """The free-fall probe."""

    name = "free_fall"
    about = (
        "Whether its continuations let unlike bodies fall unlike, prompted with three bodies of "
        "two kinds, and with three by Newton's law."
    )
    uses = ("n_sequences", "seeds", "data_seed")
    asks = ("predict_next",)
    of = ("NextTokenModel",)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why a checkpoint cannot be prompted, or None."""
        own = checkpoint.trained_on
        if own.name not in WORLDS or checkpoint.law != NEWTON:
            return (
                f"protocol {own.name!r} under law {checkpoint.law!r} has other bodies than the "
                f"triples that are asked; take a model of {' or '.join(WORLDS)}"
            )
        if own.n_points % (2 * BODIES) or own.n_points < 72:
            return (
                f"n_points={own.n_points} is not a multiple of 6 from 72 on, so that a prompt "
                "would not end with a star after twelve steps; train with 72"
            )
        return None

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the fall of continuations of each world's prompts, and that of controls."""
        own, twins = checkpoint.trained_on, checkpoint.twins(settings.seeds[0])
        outcomes = []
        for name in pieces.progress(WORLDS):
            world = observed_for(protocols.get(name), own)
            indices = np.arange(settings.n_sequences)
            test = HeldOutSystems(world, world.systems(settings.data_seed, "test", indices))
            setting = {"prompt": name}
            found = _measured(test, continued(checkpoint.model, test))
            outcomes.append(Outcome(found, setting=setting))
            outcomes += [
                Outcome(_measured(test, continued(twin, test)), arm=arm, setting=setting)
                for arm, twin in twins.items()
            ]
            blurred = _measured(test, _with_errors(test, found["first_error"].value))
            outcomes.append(Outcome(blurred, variant=WITH_ERRORS, arm="control", setting=setting))
            fits = _fits(world, settings.data_seed, settings.n_sequences)
            outcomes += [
                Outcome(_measured(test, points), variant=who, arm=arm, setting=setting)
                for who, arm, points in _others(test, own, fits)
            ]
        return outcomes

    def answers(self, results: Sequence[Result]) -> list[str]:
        """Return a sentence on the fall in each model's continuations, beside the observers."""
        return [
            _sentence(name, [x for x in mine if own_setting(x)["prompt"] == ASKED], results)
            for name, mine in trained_models(results).items()
        ]

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw what continuations of unlike bodies follow."""
        panels = [
            dots.Panel(title, {ASKED: of_prompt(ASKED, metric)}, level=references.IN_BINS)
            for metric, title in MEASURES.items()
        ]
        path = out / "figures" / "free_fall.png"
        return [Picture(CAPTION, [dots.draw(results, panels, path, across=2)])]


@functools.lru_cache(maxsize=4)
def _fits(world: Protocol, seed: int, n: int) -> tuple[tuple[str, str, Array], ...]:
    """Return name, arm and places [N, n_points, 2] of the observers; others may ask them again."""
    systems, n_seen = world.systems(seed, "test", np.arange(n)), world.n_points // 2
    population = ceiling.typical_systems(world)
    knows = ceiling.fit(world, systems, n_seen, population)
    found = [(references.FIT, "ceiling", knows.points)]
    assert world.disturbance is not None
    if len(world.disturbance.couplings) > 1:
        infers = fit_over_kinds(world, systems, n_seen, population)
        alike = np.ones((n, BODIES, BODIES))
        newton = ceiling.fit(world, systems, n_seen, population, coupling=alike)
        found += [(INFERS, "ceiling", infers), (IGNORANT, "control", newton.points)]
    return tuple(found)


def _with_errors(test: HeldOutSystems, distance: float) -> Array:
    """Return true orbits with normal errors of places whose mean distance in AU is given."""
    rng = np.random.default_rng(0)
    true = test.batch["coordinates"]
    return np.asarray(true + distance / math.sqrt(math.pi / 2) * rng.standard_normal(true.shape))


def _others(
    test: HeldOutSystems, own: Protocol, fits: Sequence[tuple[str, str, Array]]
) -> Iterator[references.Named]:
    """Yield the truth, the observers, and controls that learnt the model's world without a law."""
    yield from references.truths(test)
    for who, arm, places in fits:
        points = test.observed.copy()
        points[:, test.n_prompt :] = places[:, test.n_prompt - 1 :]
        yield who, arm, points
    yield from references.of_world(test, own)


def _measured(test: HeldOutSystems, points: Array) -> dict[str, Interval]:
    """Return how the bodies of continuations [N, T, 2] fall, and their errors."""
    first, world = (test.n_prompt - 1) // BODIES, test.world
    bodies = points[:, 1:].reshape(len(points), -1, BODIES, 2)[:, :, OBSERVED]
    mass = np.stack([world.planet_mass[:, 0], world.star_mass, world.planet_mass[:, 1]], axis=1)
    pair, dt = bodies[:, :, 0] - bodies[:, :, 1], test.batch["dt"]
    return {
        # Of what is continued alone: a jump where it leaves the prompt is no pull.
        **followed(attractions(bodies[:, first:], dt, mass), world.coupling),
        "exponent_within": within(of_path(pair, dt, first)),
        **first_and_last(test, points),
    }


def _sentence(name: str, mine: Sequence[Result], results: Sequence[Result]) -> str:
    """Say how unlike the bodies fall in a model's continuations of unlike bodies."""
    beside = []
    for who in (references.IN_BINS, INFERS, IGNORANT, references.FILTER, references.TABLE):
        same = [x for x in results if x.case.variant == who and own_setting(x)["prompt"] == ASKED]
        if same:
            beside.append(f"{who} {same[0].metrics[MET].value:.2f}")
    trained = mine[0].details["checkpoint"]["protocol"]
    shown = trainings.words([x.metrics[MET] for x in mine], ".2f")
    return (
        f"{name} (trained on {trained}), prompted with bodies that fall unlike, goes on as they do "
        f"in {shown} of the systems ({'; '.join(beside)})."
    )


PROBE = FreeFall()
"""The probe ``free_fall``."""
