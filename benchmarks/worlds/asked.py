"""Questions: orbits of test worlds, prompts of several lengths, and the law of what follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worlds.names import HALF, HELD_OUT, TRAINED
from orbits import protocols
from orbits.arithmetic import Array
from orbits.implied.pulls import of_path
from orbits.implied.within import within_resampled
from orbits.laws.family import power_name
from orbits.runs import artefact, statistics
from orbits.runs.statistics import Interval
from orbits.runs.statistics.bootstrap import percentiles
from worldmodel.probes.motion.held_out import HeldOutSystems

AHEAD = 12
"""Steps that are continued, after a prompt of any length."""
TRUTHS = "truths.npz"
N_BOOT = 200
SEED = 0

Continue = Callable[[HeldOutSystems, int], Array]
"""Returns rows [N, T, 2] in AU: prompts of so many rows, continued."""
Exponents = tuple[Array, Array]
"""The exponent of each world [W], and that of each resample of its sequences [W, n_boot]."""
Paths = tuple[Exponents, list[Array]]
"""Exponents that continuations obey, and how far off each ends in AU, [N] for each world."""


@dataclass(frozen=True)
class Asked:
    """Test worlds and prompts.

    Attributes:
        protocol: What observes; its law plays no part.
        laws: Of the test worlds.
        values: What tells them apart, ascending: the exponent of the distance, or the parameter.
        has_powers: Whether it is the exponent.
        is_held_out: Whether no law of the training is near, for each.
        prompts: Lengths in time steps, ascending.
        n_test: Sequences of each world.
    """

    protocol: protocols.Protocol
    laws: tuple[str, ...]
    values: tuple[float, ...]
    has_powers: bool
    is_held_out: tuple[bool, ...]
    prompts: tuple[int, ...]
    n_test: int

    @classmethod
    def of(
        cls,
        world: Mapping[str, Any],
        tested: Sequence[Mapping[str, Any]],
        prompts: Sequence[int],
        n_test: int,
    ) -> Asked:
        """Read the arguments of a cell."""
        protocol = protocols.get(world["name"], {"n_bins": world["n_bins"]}).unchanged(world)
        powers = all("exponent" in each for each in tested)
        values = tuple(each["exponent" if powers else "parameter"] for each in tested)
        laws = tuple(power_name(-each["exponent"]) if powers else each["law"] for each in tested)
        held_out = tuple(each["held_out"] for each in tested)
        return cls(protocol, laws, values, powers, held_out, tuple(prompts), n_test)

    @cached_property
    def worlds(self) -> list[HeldOutSystems]:
        """The test systems of each world as observed."""
        found = []
        for law in self.laws:
            world = dataclasses.replace(self.protocol, law=law)
            found.append(HeldOutSystems(world, world.systems(0, "test", range(self.n_test))))
        return found

    @cached_property
    def halved(self) -> list[HeldOutSystems]:
        """The test worlds at half the time step, without systems whose step is the finest."""
        found = []
        for test in self.worlds:
            rows = np.flatnonzero(test.world.dt_index > 0)
            world = test.world.rows(rows)
            moved = world._replace(dt_index=world.dt_index - 1)
            found.append(HeldOutSystems(test.protocol, moved))
        return found

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Settings that tell answers apart: each prompt, then the longest at half the time step."""
        whole: list[dict[str, Any]] = [{"prompt": steps} for steps in self.prompts]
        return [*whole, {"prompt": self.prompts[-1], "time step": HALF}]

    def tests(self, setting: Mapping[str, Any]) -> list[HeldOutSystems]:
        """Return the test worlds of a setting."""
        return self.halved if setting.get("time step") == HALF else self.worlds

    def own_path(self, setting: Mapping[str, Any], continued: Continue) -> Paths:
        """Return the exponents that continuations obey, and how far off planet - star ends."""
        steps = setting["prompt"]
        found, errors = [], []
        for test in self.tests(setting):
            points = continued(test, 1 + 2 * steps)
            path, true = (
                rows[:, 1 : 2 * (steps + AHEAD) : 2] - rows[:, 2 : 1 + 2 * (steps + AHEAD) : 2]
                for rows in (points, test.batch["coordinates"])
            )
            found.append(within_resampled(of_path(path, test.batch["dt"], steps), N_BOOT, SEED))
            errors.append(np.linalg.norm(path[:, -1] - true[:, -1], axis=-1))
        exponents = (np.array([each[k] for each in found]) for k in (0, 1))
        return tuple(exponents), errors  # type: ignore[return-value]

    def measured(self, paths: Paths, truth: Exponents) -> dict[str, Interval]:
        """Return ``S``, ``exponent@WORLD``, ``bias@WORLD`` of the worlds held out, and ``error``.

        A world that is no power of the distance counts as the exponent of its true orbits.

        Args:
            paths: Of continuations.
            truth: Of true orbits in bins. The same sequences are drawn where there are as many.
        """
        (value, drawn), errors = paths
        x = np.array(self.values) if self.has_powers else truth[0]
        known = ~np.array(self.is_held_out)
        share = float(self.slope(value, x) / self.slope(truth[0], x))
        measured = {"S": percentiles(share, self.slope(drawn, x) / self.slope(truth[1], x))}
        for world, one, each in zip(self.values, value, drawn, strict=True):
            measured[f"exponent@{world:g}"] = percentiles(one, each)
        for number in np.flatnonzero(~known):
            off, each = (
                y[number] - _line(x[known], y[known], x[number]) for y in (value[:, None], drawn)
            )
            measured[f"bias@{self.values[number]:g}"] = percentiles(float(off[0]), each)
        return {**measured, **self.both_kinds("error", errors, statistics.median)}

    def slope(self, y: Array, x: Array | None = None) -> Array:
        """Return sums of products of numbers by world [W, ...] and of what tells worlds apart."""
        x = np.array(self.values) if x is None else x
        return np.asarray((x - x.mean()) @ (y - y.mean(axis=0)))

    def both_kinds(
        self, name: str, values: Sequence[Array], of: Callable[[Array], Interval] | None = None
    ) -> dict[str, Interval]:
        """Return means over sequences, over worlds of the training and over those held out.

        Args:
            name: The metric's.
            values: One number per sequence, for each world.
            of: Takes the place of the mean; of a column [N, 1].
        """
        found = {}
        for kind, held_out in ((TRAINED, False), (HELD_OUT, True)):
            parts = [v for v, h in zip(values, self.is_held_out, strict=True) if h == held_out]
            if parts:
                each = np.concatenate(parts)
                found[f"{name}@{kind}"] = mean(each) if of is None else of(each[:, None])
        return found


def save_truths(folder: Path, found: Sequence[Exponents]) -> None:
    """Keep the exponents of true orbits in bins, one for each of :attr:`Asked.settings`."""
    arrays = {
        f"{k} {n}": x for k, pair in enumerate(found) for n, x in zip("vd", pair, strict=True)
    }
    artefact.save_arrays(folder / TRUTHS, arrays, {})


def load_truths(folder: Path) -> list[Exponents]:
    """Return what :func:`save_truths` kept."""
    arrays, _ = artefact.load_arrays(folder / TRUTHS)
    return [(arrays[f"{k} v"], arrays[f"{k} d"]) for k in range(len(arrays) // 2)]


def _line(x: Array, y: Array, at: float) -> Array:
    """Return the line through points [W] and [W, B] at another place, [B]."""
    middle = x - x.mean()
    return np.asarray(y.mean(axis=0) + (at - x.mean()) * (middle @ y) / (middle @ middle))


def mean(values: Array) -> Interval:
    """Return the mean of one number per sequence with its interval."""
    return statistics.mean(values, np.ones(len(values)))
