"""Pairs of systems that differ in their law alone, and meet where the prompt ends.

Both have the same masses, centre of mass and time step, and at the last step of the prompt the same
places and velocities. So their last rows are the same, token for token, and what is in the residual
stream there and differs comes from the past. What the law changes from there on is the world's own
change: the same past state, continued under the other law.

A third system obeys the law of the first and pulls as hard as the second where they meet, because
its masses are larger or smaller. It differs in how strong the force is and not in its exponent.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orbits import laws, motion
from orbits.arithmetic import TURN, Array
from orbits.osculating import osculating
from orbits.protocols import Protocol
from orbits.systems import Systems
from worldmodel.probes.motion.held_out import HeldOutSystems

LEAST = 10
"""Fewest pairs of a measurement."""


@dataclass(frozen=True)
class Pairs:
    """N systems of a law with their partners.

    Attributes:
        own: The systems that are shown.
        other: The same systems under another law, in the same state at the end of the prompt.
        heavier: Systems of the own law in the same state, with masses that pull there as hard as
            the other law does.
    """

    own: HeldOutSystems
    other: HeldOutSystems
    heavier: HeldOutSystems

    @property
    def first(self) -> int:
        """The first step that is predicted."""
        return (self.own.n_prompt - 1) // 2


def pairs(protocol: Protocol, law: str, other: str, seed: int, n: int) -> Pairs:
    """Return the systems, of the first n test systems of a law, that have such pairs.

    A system is left out if one of its two partners is not bound, turns nearer or farther than any
    system of the law does, is observed more or less often per turn of the angle than all of them
    are, or has masses beyond theirs.
    """
    there = dataclasses.replace(protocol, law=law)
    world = there.systems(seed, "test", np.arange(n))
    when = np.asarray(there.dts)[world.dt_index] * (there.n_points // 4 - 1)
    m1, m2 = world.planet_mass[:, 0], world.star_mass
    place, velocity = (x[:, 0] for x in motion.relative_orbit(law, world.orbits(0), when[:, None]))
    distance = np.linalg.norm(place, axis=-1)
    own_pull, other_pull = (
        laws.get(name).relative_acceleration(distance, m1, m2) for name in (law, other)
    )
    factor = other_pull / own_pull  # both pulls grow as the sum of the masses
    found, counts = [], np.ones(n, bool)
    for name, heavier in ((other, np.ones(n)), (law, factor)):
        masses = world._replace(
            planet_mass=world.planet_mass * heavier[:, None], star_mass=world.star_mass * heavier
        )
        partner = _through(name, masses, place, velocity, when)
        counts &= _is_usual(there, world, name, partner)
        found.append((name, partner))
    rows = np.flatnonzero(counts)
    if len(rows) < LEAST:
        raise ValueError(
            f"of {n} systems of law {law!r} only {len(rows)} have a pair under {other!r}; take "
            f"more n_sequences, or a nearer law"
        )
    return Pairs(
        HeldOutSystems(there, world.rows(rows)),
        *(HeldOutSystems(dataclasses.replace(there, law=x), y.rows(rows)) for x, y in found),
    )


def _through(law: str, masses: Systems, place: Array, velocity: Array, when: Array) -> Systems:
    """Return systems of given masses that have a place and a velocity [N, 2] at times [N]."""
    m1, m2 = masses.planet_mass[:, 0], masses.star_mass
    orbit = osculating(laws.get(law), place, velocity, m1, m2)
    a, e = np.asarray(orbit.semi_major_axis), np.asarray(orbit.eccentricity)
    bound = np.isfinite(a)
    period = np.full(len(a), np.nan)
    period[bound] = motion.period(law, a[bound], e[bound], m1[bound], m2[bound])
    return masses._replace(
        semi_major_axis=a[:, None],
        eccentricity=e[:, None],
        periapsis=np.asarray(orbit.periapsis)[:, None],
        mean_anomaly=(np.asarray(orbit.mean_anomaly) - TURN * when / period)[:, None],
    )


def _is_usual(
    protocol: Protocol, world: Systems, law: str, partner: Systems
) -> npt.NDArray[np.bool_]:
    """Return which partners [N] lie within the range of the systems of a world.

    Args:
        protocol: Protocol of the world.
        world: Systems of the world.
        law: The law of the partners.
        partner: The partners; NaN where they are not bound.
    """
    shown, asked = _shape(protocol, protocol.law, world), _shape(protocol, law, partner)
    return np.all((shown.min(axis=0) <= asked) & (asked <= shown.max(axis=0)), axis=1)


def _shape(protocol: Protocol, law: str, world: Systems) -> Array:
    """Return turning points, points per turn of the angle and masses of systems, [N, 5]."""
    a, e = world.semi_major_axis[:, 0], world.eccentricity[:, 0]
    m1, m2 = world.planet_mass[:, 0], world.star_mass
    bound = np.isfinite(a)
    turn = np.full(len(a), np.nan)
    turn[bound] = motion.angular_period(law, a[bound], e[bound], m1[bound], m2[bound])
    points = turn / np.asarray(protocol.dts)[world.dt_index]
    return np.stack([a * (1 - e), a * (1 + e), points, m1, m2], axis=-1)
