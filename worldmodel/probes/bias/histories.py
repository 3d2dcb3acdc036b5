"""Sequences that reach the same states by different histories, and sequences of other systems.

The states of two random orbits never coincide. They do where one system is observed twice, the
second time with its centre of mass elsewhere and from a start that lies some whole time steps
later. Row t of the later sequence then has the relative position, the relative velocity and the
masses of row t + shift of the earlier one, whatever the law of force, and no coordinate of either
is one of the other's.

The masses stay what they are along a sequence, so whoever recognises a labelled sequence knows them
at its other rows too. Systems that carry no label tell a function of the state from such a memory.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from orbits import motion
from orbits.arithmetic import TURN
from orbits.protocols import Protocol
from orbits.systems import Systems
from worldmodel.models.state import state_values
from worldmodel.probes.motion.held_out import joined

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Histories:
    """N systems, each observed twice, and F others, with K rows of the planet in each sequence.

    Attributes:
        batch: ``tokens`` and ``coordinates`` of 2 N + F sequences with T rows: the systems as they
            were sampled, the same systems with another history, the other systems.
        rows: The planet's rows among T, [K].
        states: The true states at these rows, standardised over the first N sequences,
            [2 N + F, K, 6]. The components are those of ``worldmodel.models.state.COMPONENTS``.
        shift: Time steps between the two starts of each system, [N].
    """

    batch: dict[str, Tensor]
    rows: npt.NDArray[np.int64]
    states: Array
    shift: npt.NDArray[np.int64]

    @property
    def n_systems(self) -> int:
        """Number N of systems that are observed twice."""
        return len(self.shift)

    @property
    def twice(self) -> slice:
        """The sequences of the systems that are observed twice."""
        return slice(0, 2 * self.n_systems)

    @property
    def fresh(self) -> slice:
        """The sequences of the other systems."""
        return slice(2 * self.n_systems, None)

    def same_state(self) -> npt.NDArray[np.int64]:
        """Return the pairs of points with the same state, [P, 2], as indices into 2 N K points."""
        n, k = self.n_systems, len(self.rows)
        system, later = np.nonzero(np.arange(k) < k - self.shift[:, None])
        first = system * k + later + self.shift[system]
        return np.stack([first, (n + system) * k + later], axis=-1)


def histories(protocol: Protocol, seed: int, n_systems: int, n_fresh: int) -> Histories:
    """Observe held-out two-body systems twice, and others once.

    The second centre of mass is that of another system of the same population, and the second
    start lies 1 to K / 2 time steps later, so no sequence leaves the distribution that the
    checkpoint was trained on.

    Args:
        protocol: The protocol, with its law. Its published defects of the state are left out: the
            identity of states is that of the true physics.
        seed: Seed of the data.
        n_systems: N; the first N systems of the split ``test``.
        n_fresh: F; those after the first 2 N.
    """
    protocol = dataclasses.replace(protocol, as_published=False)
    indices = np.arange(2 * n_systems + n_fresh)
    systems = protocol.systems(seed, "test", indices, "force")
    parts = np.split(indices, [n_systems, 2 * n_systems])
    world, elsewhere, fresh = (systems.rows(part) for part in parts)
    n_steps = -(-protocol.n_points // 2)
    shift = np.random.default_rng(seed).integers(1, max(2, n_steps // 2 + 1), n_systems)
    later = _later(world, protocol, shift)._replace(centre_of_mass=elsewhere.centre_of_mass)
    observed = joined([protocol.observe(one, labelled=True) for one in (world, later, fresh)])
    rows = np.flatnonzero(observed["body"][0] > 0)
    values = state_values(torch.from_numpy(observed["state"][:, rows])).numpy()
    mean, std = (f(values[:n_systems], axis=(0, 1)) for f in (np.mean, np.std))
    return Histories(
        batch={
            "tokens": torch.from_numpy(observed["tokens"].astype(np.int64)),
            "coordinates": torch.from_numpy(observed["coordinates"]).float(),
        },
        rows=rows,
        states=(values - mean) / std,
        shift=shift,
    )


def _later(world: Systems, protocol: Protocol, shift: npt.NDArray[np.int64]) -> Systems:
    """Return systems of one planet as they are ``shift`` time steps later."""
    period = motion.period(
        protocol.law,
        world.semi_major_axis[:, 0],
        world.eccentricity[:, 0],
        world.planet_mass[:, 0],
        world.star_mass,
    )
    turns = np.asarray(protocol.dts)[world.dt_index] * shift / period
    # Whole turns are kept: under most laws the periapsis advances with each.
    return world._replace(mean_anomaly=world.mean_anomaly + (TURN * turns)[:, None])
