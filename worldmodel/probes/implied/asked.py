"""What is asked: prompts of several worlds and of orbits outside the training box.

A time step is chosen by the radial period, and so by the law. That it does not tell the law to a
model is shown in two ways: the same orbits are observed at the steps that another world's law would
have chosen; and the token of such a step is told with the places of the orbit's own.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from orbits import laws, shifts
from orbits.arithmetic import Array
from orbits.implied.pulls import of_path
from orbits.implied.within import within
from orbits.protocols import Protocol
from orbits.runs.statistics import Interval
from worldmodel.models.orbit import OrbitModel
from worldmodel.probes.motion.held_out import HeldOutSystems, batches, mean_of, rolled_out

WORLDS = ("power_1_5", "newton", "power_2_5")
"""Laws of the prompts, beside that of the training and that of the evaluation."""
ROLLOUT, ONE_STEP = "rollout", "one step"
STEPS_OF, TOKEN_OF, SHIFT = "time steps of", "token of", "shift"
"""Where prompts have the time steps of another world, are told its token alone, or are shifted."""
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
        """What tells these prompts from others, as plain data."""
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
        parts = [
            rolled_out(model, {k: v[rows] for k, v in self.batch.items()}, self.test.n_prompt)
            for rows in batches(self.test)
        ]
        return np.concatenate(parts)

    def measured(self, points: Array) -> dict[str, Interval]:
        """Return the exponent that continuations [N, T, 2] obey, and how far off they are.

        Returns:
            ``exponent_within``; ``first_error`` and ``last_error``, AU, the distance of planet and
            star from the truth one step after the prompt and at the end.
        """
        places = self.test.protocol.n_points // 2
        both = points[:, 1 : 1 + 2 * places].reshape(len(points), places, 2, 2)
        pulls = of_path(both[:, :, 0] - both[:, :, 1], self.test.batch["dt"], self.first)
        errors = self.test.errors(points)
        off = np.fmax(errors["planet"], errors["star"])  # one of them is NaN in each row
        return {
            "exponent_within": within(pulls),
            "first_error": mean_of(off[:, 1 + 2 * self.first : 3 + 2 * self.first]),
            "last_error": mean_of(off[:, 2 * places - 1 : 1 + 2 * places]),
        }


def all_prompts(protocol: Protocol, others: Sequence[str], seed: int, n: int) -> Iterator[Prompts]:
    """Yield the prompts of all worlds: as observed, at others' time steps, and shifted.

    Args:
        protocol: The world of the training, which is shifted.
        others: Further laws of prompts.
        seed: Seed of the data; the first test sequences are taken.
        n: Sequences of each world.
    """
    names = tuple(dict.fromkeys((*WORLDS, *others)))
    worlds = {name: dataclasses.replace(protocol, law=name) for name in names}
    systems = {x: world.systems(seed, "test", np.arange(n)) for x, world in worlds.items()}
    for name in names:
        test = HeldOutSystems(worlds[name], systems[name])
        yield Prompts(name, name, name, test, systems[name].dt_index)
    for name, other in itertools.permutations(WORLDS, 2):
        told = systems[other].dt_index
        moved = systems[name]._replace(dt_index=told)
        yield Prompts(name, other, other, HeldOutSystems(worlds[name], moved), told)
        yield Prompts(name, name, other, HeldOutSystems(worlds[name], systems[name]), told)
    for shift in SHIFTS:
        shifted = dataclasses.replace(protocol, shift=shifts.get(shift))
        try:
            world = shifted.systems(seed, "test", np.arange(n), "force")
        except ValueError:  # a law need not bind closer or more eccentric orbits
            continue
        test = HeldOutSystems(shifted, world)
        yield Prompts(protocol.law, protocol.law, protocol.law, test, world.dt_index, shift)


def in_words(law: str) -> str:
    """Return a law as its power of the distance, or its name."""
    exponents = laws.get(law).exponents
    return law if exponents is None else f"r^{exponents['r']:g}"
