"""The disturbed probe: does a world model continue orbits under more than their attraction?

Prompts come from the undisturbed binaries and from each world of :mod:`orbits.disturbed`. The
exponent along orbits sees no disturbance, so each has a measure of its own (:mod:`orbits.implied.
beyond`) on continuations: the loss of angular momentum, the change of the pull in time, what no
centre of mass of the two explains, and how far the pull is from that of their masses.

Beside a model stand orbit fits by an observer who knows of the disturbance and by one who believes
in Newton's law alone, a linear filter and a table of orbits from the model's own world, and its
untrained twin. Pasted orbits of a world have what that world has, so that a table passes where the
model's own world is asked. A world that was never seen cannot be known from its prompts alone: what
is asked of a model of another world is which it takes them for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from orbits import protocols
from orbits.arithmetic import Array
from orbits.implied.beyond import beyond
from orbits.implied.pulls import of_path
from orbits.implied.within import within
from orbits.motion import NEWTON
from orbits.protocols import Protocol
from orbits.runs import trainings
from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Metric, Result
from orbits.runs.statistics import Interval
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.implied import references
from worldmodel.probes.looks import own_setting, trained_models
from worldmodel.probes.motion import dots
from worldmodel.probes.motion.held_out import HeldOutSystems, continued, first_and_last
from worldmodel.probes.settings import Settings

PLAIN = "identifiable"
WORLDS = (
    PLAIN,
    *(
        name
        for name in protocols.names()
        if (disturbance := protocols.get(name).disturbance) and not disturbance.triple
    ),
)
IGNORANT = "orbit fit by Newton's law"
ASKED = {
    "drag": ("drag_rate", "loses {} of its angular momentum a year"),
    "changing_g": ("g_rate", "has a pull that changes by {} of itself a year"),
    "hidden_body": ("off_centre", "has accelerations of which {} fit no centre of mass"),
    "kinds": ("strength", "pulls by a factor whose |ln| is {} against its masses"),
}
"""The measure of each disturbed world, and the words for its value."""
MEASURES = {
    "drag_rate": "drag: loss of angular momentum\na year",
    "g_rate": "changing G: change of the pull\na year",
    "off_centre": "hidden body: share of accelerations\nthat fit no centre of mass",
    "strength": "unlike kinds: |ln| of the pull over\nthat of the masses",
}
"""Titles of the panels by measure."""
CAPTION = (
    "What continuations show of each disturbance, after prompts that have it and after prompts of "
    "undisturbed binaries: medians; mean of three trainings or more with its 95% interval, of two "
    "from one to the other, of one and of controls over sequences. Dashed: the truth in bins "
    "after prompts that have it. A model that takes up drag or a changing G has its full mark "
    "there; a hidden body is not seen through bins, and an observer who knows of no kinds follows "
    "them too. What lies beyond a panel is at its edge."
)


class Disturbed(Probe):
    """The disturbed probe."""

    name = "disturbed"
    about = (
        "What its continuations show of drag, a changing G, a hidden body and unlike kinds, "
        "prompted with orbits that have them and with orbits that have not."
    )
    uses = ("n_sequences", "seeds", "data_seed")
    asks = ("predict_next",)
    of = ("NextTokenModel",)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why a checkpoint cannot be prompted, or None."""
        own = checkpoint.trained_on
        if own.disturbance is not None and own.disturbance.triple:
            return f"protocol {own.name!r} has three bodies; take the probe free_fall"
        if own.name not in WORLDS or checkpoint.law != NEWTON or own.law != NEWTON:
            return (
                f"protocol {own.name!r} under law {checkpoint.law!r} has other time steps or "
                f"forces than the disturbed worlds; take a model of {', '.join(WORLDS)}"
            )
        if own.n_points % 4 or own.n_points < 24:
            return (
                f"n_points={own.n_points} is not a multiple of 4 from 24 on, so that a prompt "
                "would not end with a star; train with 48"
            )
        return None

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the measures of continuations of each world's prompts, and those of controls."""
        own, twins = checkpoint.trained_on, checkpoint.twins(settings.seeds[0])
        outcomes = []
        for name in pieces.progress(WORLDS):
            world = observed_for(protocols.get(name), own)
            indices = np.arange(settings.n_sequences)
            test = HeldOutSystems(world, world.systems(settings.data_seed, "test", indices))
            setting = {"prompt": name}
            outcomes += [
                Outcome(_measured(test, continued(model, test)), arm=arm, setting=setting)
                for arm, model in ((None, checkpoint.model), *twins.items())
            ]
            outcomes += [
                Outcome(_measured(test, points), variant=who, arm=arm, setting=setting)
                for who, arm, points in _others(test, own)
            ]
        return outcomes

    def answers(self, results: Sequence[Result]) -> list[str]:
        """Return sentences on each disturbance in continuations, beside the truth and the fits."""
        return [
            _sentence(name, world, mine, results)
            for name, mine in trained_models(results).items()
            for world in dict.fromkeys(x.case.setting["prompt"] for x in mine)
            if world in ASKED
        ]

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw each disturbance in continuations of prompts that have it, and that have not."""
        shown = {x.case.setting["prompt"] for x in results}
        panels = [
            dots.Panel(
                MEASURES[metric],
                {
                    "prompts with it": of_prompt(world, metric),
                    "undisturbed prompts": of_prompt(PLAIN, metric),
                },
                level=references.IN_BINS,
            )
            for world, (metric, _) in ASKED.items()
            if world in shown
        ]
        if not panels:
            return []
        path = out / "figures" / "disturbed.png"
        return [Picture(CAPTION, [dots.draw(results, panels, path, across=2)])]


def of_prompt(world: str, metric: str) -> dots.Value:
    """Return a metric of the results of one world's prompts."""

    def value(result: Result) -> Metric | None:
        return result.metrics.get(metric) if result.case.setting["prompt"] == world else None

    return value


def observed_for(world: Protocol, own: Protocol) -> Protocol:
    """Return a world as it is observed for a model: as many points, the same bins."""
    return dataclasses.replace(world, n_points=own.n_points, n_bins=own.n_bins)


def _others(test: HeldOutSystems, own: Protocol) -> Iterator[references.Named]:
    """Yield the truth, the fits, and controls that learnt the model's world without a law."""
    yield from references.truths(test)
    yield references.FIT, "ceiling", references.orbit_fit(test)
    if test.protocol.disturbance is not None:
        yield IGNORANT, "control", references.orbit_fit(test, believed=NEWTON)
    yield from references.of_world(test, own)


def _measured(test: HeldOutSystems, points: Array) -> dict[str, Interval]:
    """Return the measures of continuations [N, T, 2], and their errors."""
    first, steps = (test.n_prompt - 1) // 2, test.protocol.n_points // 2
    places = points[:, 1 : 1 + 2 * steps].reshape(len(points), steps, 2, 2)
    dt, world = test.batch["dt"], test.world
    return {
        "exponent_within": within(of_path(places[:, :, 0] - places[:, :, 1], dt, first)),
        # Of what is continued alone: a jump where it leaves the prompt is no disturbance.
        **beyond(places[:, first:], dt, world.star_mass + world.planet_mass[:, 0], 1),
        **first_and_last(test, points),
    }


def _sentence(name: str, world: str, mine: Sequence[Result], results: Sequence[Result]) -> str:
    """Say how much of one disturbance a model's continuations have."""
    metric, words = ASKED[world]
    asked = [x for x in mine if x.case.setting["prompt"] == world]
    plain = [x for x in mine if x.case.setting["prompt"] == PLAIN]
    trained = asked[0].details["checkpoint"]["protocol"]
    beside = []
    for who in (references.IN_BINS, references.FIT, IGNORANT, references.TABLE):
        same = [
            x
            for x in results
            if own_setting(x)["prompt"] == world
            and x.case.variant == who
            and x.details["checkpoint"]["protocol"] == trained
        ]
        if same:
            beside.append(f"{who} {same[0].metrics[metric].value:.3f}")
    said = f"{name} (trained on {_orbits(trained)}), prompted with {_orbits(world)}, "
    if not all(math.isfinite(x.metrics[metric].value) for x in (*asked, *plain)):
        return f"{said}goes on by paths that tell nothing of it ({'; '.join(beside)})."
    return (
        f"{said}{words.format(_shown(asked, metric))}, with {_orbits(PLAIN)} "
        f"{_shown(plain, metric)} ({'; '.join(beside)})."
    )


def _orbits(world: str) -> str:
    return "undisturbed orbits" if world == PLAIN else f"orbits of {world}"


def _shown(results: Sequence[Result], metric: str) -> str:
    """Return a metric over trainings, or of one with its interval over sequences."""
    return trainings.words([result.metrics[metric] for result in results], ".3f")


PROBE = Disturbed()
"""The probe ``disturbed``."""
