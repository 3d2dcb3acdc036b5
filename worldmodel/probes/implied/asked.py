"""Questions: prompts of several worlds and of orbits outside the training box.

A time step is chosen by the radial period, and so by the law. That it does not tell the law to a
model is shown in two ways: the same orbits are observed at the steps that another world's law would
have chosen; and the token of such a step is told with the places of the orbit's own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from orbits import shifts
from orbits.arithmetic import Array
from orbits.implied.family_free import family_free
from orbits.implied.overall import overall
from orbits.implied.pulls import Pulls, of_path
from orbits.implied.within import within, within_resampled
from orbits.protocols import Protocol
from orbits.runs.statistics import Interval
from orbits.runs.statistics.bootstrap import percentiles
from orbits.visible import TRIED, aliased, bends, check_shifted, periods, reach
from worldmodel.models.orbit import OrbitModel
from worldmodel.probes.implied.names import ROLLOUT, SHIFT, STEPS_OF, TOKEN_OF, WORLDS
from worldmodel.probes.motion.held_out import (
    HeldOutSystems,
    batches,
    continued,
    first_and_last,
    seen_by,
)
from worldmodel.world_model import predicted

SHOWN = 6
"""Sequences that are drawn: the first ones, whatever they look like."""
LEAST_BEND = 0.25
"""Least bend of the median orbit in a step, in bins.

Newton's has 7.3, a fiftieth of his force 0.31, where the truth in bins has -1.93 [-2.03, -1.83],
and a hundredth 0.17, where it has -1.62 [-1.75, -1.23].
"""
SHIFTS = tuple(name for name in shifts.names() if shifts.get(name).exponent == "r")
"""Shifts of the exam that move orbits out of the training box and test the distance."""


@dataclass(frozen=True)
class Prompts:
    """Prompts of one world.

    Attributes:
        law: The law of the orbits.
        steps: The law whose periods choose the time steps.
        token: The law whose time step the first token tells.
        test: The systems as observed.
        told: Number of the time step that is told, [N].
        shift: How orbits differ from those of the training; None where they do not.
    """

    law: str
    steps: str
    token: str
    test: HeldOutSystems
    told: npt.NDArray[np.int64]
    shift: str | None = None

    @property
    def setting(self) -> dict[str, str]:
        """Entries that tell these prompts from others, as plain data."""
        setting = {"asked": ROLLOUT, "prompt": self.law}
        if self.shift is not None:
            return {**setting, SHIFT: self.shift}
        if self.steps != self.law:
            return {**setting, STEPS_OF: self.steps}
        return setting if self.is_own else {**setting, TOKEN_OF: self.token}

    @property
    def is_own(self) -> bool:
        """Whether the orbits are those of their world, observed as it observes them."""
        return self.law == self.steps == self.token and self.shift is None

    @cached_property
    def batch(self) -> dict[str, npt.NDArray]:
        """The observation, with the token that is told."""
        tokens = self.test.batch["tokens"].copy()
        tokens[:, 0] = self.test.protocol.tokens.dt_token(self.told)[:, None]
        return {**self.test.batch, "tokens": tokens}

    @property
    def first(self) -> int:
        """The first step that is predicted."""
        return (self.test.n_prompt - 1) // 2

    def continued(self, model: OrbitModel) -> Array:
        """Return the prompts and a model's likeliest continuations, [N, T, 2] in AU."""
        return continued(model, self.test, self.batch)

    def drawn(self, model: OrbitModel, draws: int, seed: int) -> list[Array]:
        """Return continuations whose rows are drawn from a model's distribution, [N, T, 2] each."""
        return [
            continued(model, self.test, self.batch, generator)
            for generator in _generators(model, draws, seed)
        ]

    def drawn_next(self, model: OrbitModel, draws: int, seed: int) -> list[Array]:
        """Return true paths with the errors of a draw: each row is drawn given the true ones."""
        found = [self.test.observed.copy() for _ in range(draws)]
        generators = _generators(model, draws, seed)
        for rows in batches(self.test):
            some = {name: value[rows] for name, value in self.batch.items()}
            prediction = predicted(*seen_by(model, some))
            for points, generator in zip(found, generators, strict=True):
                places = prediction.drawn(generator)  # type: ignore[attr-defined]
                points[rows, self.test.n_prompt :] = places[:, self.test.n_prompt - 1 : -1]
        return found

    def shown(self, points: Array) -> dict[str, npt.NDArray]:
        """Return the first sequences and their continuations [N, T, 2], as figures need them."""
        return {
            f"{self.law} true": self.test.batch["coordinates"][:SHOWN],
            f"{self.law} rolled": points[:SHOWN],
            f"{self.law} dt": self.test.batch["dt"][:SHOWN],
        }

    def pulls(self, points: Array) -> Pulls:
        """Return the pulls that continuations [N, T, 2] show by their own second differences."""
        places = self.test.protocol.n_points // 2
        both = points[:, 1 : 1 + 2 * places].reshape(len(points), places, 2, 2)
        return of_path(both[:, :, 0] - both[:, :, 1], self.test.batch["dt"], self.first)

    def measured(self, points: Array) -> dict[str, Interval]:
        """Return the exponent that continuations [N, T, 2] obey, and how far off they are.

        Returns:
            ``exponent_within``; ``first_error`` and ``last_error``, AU, the distance of planet and
            star from the truth one step after the prompt and at the end.
        """
        own = {"exponent_within": within(self.pulls(points))}
        return own | first_and_last(self.test, points)

    def otherwise(self, points: Array) -> dict[str, Interval]:
        """Return what other readings of the same continuations [N, T, 2] have for an exponent.

        Returns:
            ``exponent_family_free``, along orbits without a family of laws; ``exponent_overall``,
            over all orbits together, where the strength of each orbit's pull tells the distance,
            too. Both are left out where there is no attraction.
        """
        pulls, world = self.pulls(points), self.test.world
        law = overall(pulls, world.planet_mass[:, 0], world.star_mass)
        found = {
            "exponent_family_free": family_free(pulls),
            "exponent_overall": law and law.exponents[-1],
        }
        return {name: value for name, value in found.items() if value is not None}

    def measured_together(self, draws: Sequence[Array]) -> dict[str, Interval]:
        """Return the same of several continuations of each prompt, means over them."""
        found = [within_resampled(self.pulls(points)) for points in draws]
        value, resampled = (np.mean(each, axis=0) for each in zip(*found, strict=True))
        own = {"exponent_within": percentiles(float(value), resampled)}
        return own | first_and_last(self.test, *draws)


def _generators(model: OrbitModel, draws: int, seed: int) -> list[torch.Generator]:
    """Return a generator for each draw, on the model's device."""
    seeds = np.random.SeedSequence(seed).generate_state(draws)
    return [torch.Generator(model.device).manual_seed(int(each)) for each in seeds]


def own_prompts(protocol: Protocol, law: str, seed: int, n: int) -> Prompts:
    """Return prompts of the world of a law, as it observes them."""
    world = dataclasses.replace(protocol, law=law)
    systems = world.systems(seed, "test", np.arange(n))
    return Prompts(law, law, law, HeldOutSystems(world, systems), systems.dt_index)


def shifted_prompts(protocol: Protocol, shift: str, seed: int, n: int) -> Prompts:
    """Return prompts of a protocol's own law outside the training box.

    Raises:
        ValueError: The protocol cannot make the shift (:func:`orbits.visible.check_shifted`).
    """
    shifted = dataclasses.replace(protocol, shift=shifts.get(shift))
    check_shifted(shifted)
    systems = shifted.systems(seed, "test", np.arange(n), "force")
    law, test = protocol.law, HeldOutSystems(shifted, systems)
    return Prompts(law, law, law, test, systems.dt_index, shift)


def all_prompts(protocol: Protocol, others: Sequence[str], seed: int, n: int) -> Iterator[Prompts]:
    """Yield the prompts of all worlds: as observed, at others' time steps, and shifted."""
    names = tuple(dict.fromkeys((*WORLDS, *others)))
    own = {name: own_prompts(protocol, name, seed, n) for name in names}
    yield from own.values()
    for name, other in itertools.permutations(WORLDS, 2):
        test, told = own[name].test, own[other].told
        moved = HeldOutSystems(test.protocol, test.world._replace(dt_index=told))
        yield Prompts(name, other, other, moved, told)
        yield Prompts(name, name, other, HeldOutSystems(test.protocol, test.world), told)
    for shift in SHIFTS:
        # A law need not bind closer or more eccentric orbits.
        with contextlib.suppress(ValueError):
            yield shifted_prompts(protocol, shift, seed, n)


@functools.cache
def refusal(protocol: Protocol) -> str | None:
    """Return why the world of a protocol has no such prompts, and the fix; None if it has."""
    if protocol.disturbance is not None and protocol.disturbance.triple:
        return f"protocol {protocol.name!r} has three bodies; take the probe free_fall"
    if protocol.max_planets != 1 or protocol.sampler == "published":
        return f"the systems of protocol {protocol.name!r} have several planets; take identifiable"
    if not protocol.is_two_body:
        return (
            f"the bodies of protocol {protocol.name!r} are moved by more than their attraction; "
            "take the probe disturbed"
        )
    if protocol.n_points % 4 or protocol.n_points < 20:
        return (
            f"n_points={protocol.n_points} is not a multiple of 4 from 20 on, so that a prompt "
            "would not end with a star; train with 48"
        )
    try:
        world = protocol.systems(0, "test", np.arange(TRIED))
    except ValueError as error:  # it does not bind an orbit
        return str(error)
    if aliased(protocol, world).any():
        shortest = periods(protocol, world).min()
        return (
            f"orbits of law {protocol.law!r} turn in {shortest:.2g} years; the shortest time step "
            f"that a token tells, {protocol.dts[0]:g} years, aliases them: take prompts of another "
            "law"
        )
    if (bend := float(np.median(bends(protocol, world)))) < LEAST_BEND:
        return (
            f"orbits of law {protocol.law!r} bend by {bend:.2g} bins a step, too little to tell by "
            "which law: take prompts of a stronger one"
        )
    if (far := float(reach(protocol, world).max())) > protocol.high:
        return (
            f"orbits of law {protocol.law!r} reach {far:.1f} AU, beyond the bins of protocol "
            f"{protocol.name!r}, which end at {protocol.high:g} AU; take prompts of another law"
        )
    return None
