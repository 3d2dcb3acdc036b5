"""Pairs of systems that differ in one thing alone, and are in the same state where the prompt ends.

At the last step of the prompt both bodies have the same places in both, and the same velocity of
one about the other. So the last rows are the same, token for token, and what is in the residual
stream there and differs comes from the past. What follows from there on is the world's own change.

Pairs of laws have the same masses, centre of mass and time step. A third system obeys the law of
the first and pulls as hard as the second where they meet, because its masses are larger or smaller.
It differs in how strong the force is and not in its exponent.

Pairs of masses have one mass that is twice or half that of the other. Their centres of mass lie
apart, as they must where both bodies are at the same places.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orbits import laws, motion
from orbits.arithmetic import TURN, Array
from orbits.osculating import osculating
from orbits.protocols import Protocol
from orbits.systems import Systems
from worldmodel.probes.donors import ANOTHER_MASS, PARTNERS
from worldmodel.probes.motion.held_out import HeldOutSystems
from worldmodel.probes.motion.interventions import MASSES

AHEAD = 6
"""Steps after a prompt over which paths are compared; later ones are out of phase."""
LEAST = 10
"""Fewest pairs of a measurement."""
FACTORS = (2.0, 0.5)
"""Another mass in units of the own one; the second where the first is not usual."""


@dataclass(frozen=True)
class Pairs:
    """N systems of a law with their partners.

    Attributes:
        own: The systems that are shown.
        partners: Systems in the same state at the end of the prompt, by their names as donors; what
            the first does from there on is the unit of others' changes.
    """

    own: HeldOutSystems
    partners: Mapping[str, HeldOutSystems]

    @property
    def other(self) -> HeldOutSystems:
        """The partners whose change is the unit."""
        return next(iter(self.partners.values()))

    @property
    def first(self) -> int:
        """The first step that is predicted."""
        return (self.own.n_prompt - 1) // 2


def of_laws(protocol: Protocol, law: str, other: str, seed: int, n: int) -> Pairs:
    """Return the systems, of the first n test systems of a law, that have pairs under another law.

    A system is left out if one of its two partners is not bound, turns nearer or farther than any
    system of the law does, is observed more or less often per turn of the angle than all of them
    are, or has masses beyond theirs.

    Raises:
        ValueError: Fewer than :data:`LEAST` systems have a pair.
    """
    there, world, when, place, velocity = _met(protocol, law, seed, n)
    m1, m2 = world.planet_mass[:, 0], world.star_mass
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
    rows = _enough(counts, f"of law {law!r}", f"under {other!r}", ", or a nearer law")
    names = zip(PARTNERS, found, strict=True)
    return Pairs(
        HeldOutSystems(there, world.rows(rows)),
        {
            name: HeldOutSystems(dataclasses.replace(there, law=x), y.rows(rows))
            for name, (x, y) in names
        },
    )


def of_masses(protocol: Protocol, changed: str, seed: int, n: int) -> Pairs:
    """Return the systems, of the first n test systems, that have a pair with another mass.

    It is twice the own one, or half of it where twice is not usual. A system is left out for the
    reasons of :func:`of_laws`, or if the centre of mass were beyond theirs.

    Args:
        protocol: The world.
        changed: ``m1`` or ``m2``.
        seed: Seed of the test systems.
        n: Their number.

    Raises:
        ValueError: Fewer than :data:`LEAST` systems have a pair.
    """
    there, world, when, place, velocity = _met(protocol, protocol.law, seed, n)
    partner, counts = world, np.zeros(n, bool)
    for factor in FACTORS:
        masses = _multiplied(world, changed, factor)
        before, after = (x.planet_mass[:, :1] + x.star_mass[:, None] for x in (world, masses))
        shares = world.star_mass[:, None] / before - masses.star_mass[:, None] / after
        moved = masses._replace(centre_of_mass=world.centre_of_mass + shares * place)
        found = _through(there.law, moved, place, velocity, when)
        new = _is_usual(there, world, there.law, found) & ~counts
        partner = _chosen(new, found, partner)
        counts |= new
    rows = _enough(counts, f"of law {there.law!r}", f"with another {changed}", "")
    return Pairs(
        HeldOutSystems(there, world.rows(rows)),
        {ANOTHER_MASS: HeldOutSystems(there, partner.rows(rows))},
    )


def _met(
    protocol: Protocol, law: str, seed: int, n: int
) -> tuple[Protocol, Systems, Array, Array, Array]:
    """Return a world, its first n test systems, and when and in which state their prompts end.

    Returns:
        The world's protocol; its systems; times [N]; places and velocities of the planet about the
        star then, [N, 2].
    """
    there = dataclasses.replace(protocol, law=law)
    world = there.systems(seed, "test", np.arange(n))
    when = np.asarray(there.dts)[world.dt_index] * (there.n_points // 4 - 1)
    place, velocity = (x[:, 0] for x in motion.relative_orbit(law, world.orbits(0), when[:, None]))
    return there, world, when, place, velocity


def _enough(
    counts: npt.NDArray[np.bool_], whose: str, pair: str, else_: str
) -> npt.NDArray[np.int64]:
    """Return the rows that have a pair, or refuse too few."""
    rows = np.flatnonzero(counts)
    if len(rows) < LEAST:
        raise ValueError(
            f"of {len(counts)} systems {whose} only {len(rows)} have a pair {pair}; take more "
            f"n_sequences{else_}"
        )
    return rows


def _multiplied(world: Systems, changed: str, factor: float) -> Systems:
    """Return systems of which one mass is multiplied."""
    if changed == "m1":
        return world._replace(planet_mass=world.planet_mass * factor)
    if changed == "m2":
        return world._replace(star_mass=world.star_mass * factor)
    raise ValueError(f"unknown mass {changed!r}; choose from {', '.join(MASSES)}")


def _chosen(where: npt.NDArray[np.bool_], those: Systems, others: Systems) -> Systems:
    """Return some systems where a mask [N] holds, and others elsewhere."""
    pairs = zip(those, others, strict=True)
    return Systems(*(np.where(where.reshape(-1, *[1] * (x.ndim - 1)), x, y) for x, y in pairs))


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
    """Return turning points, points per turn, masses and centre of mass of systems, [N, 7]."""
    a, e = world.semi_major_axis[:, 0], world.eccentricity[:, 0]
    m1, m2 = world.planet_mass[:, 0], world.star_mass
    bound = np.isfinite(a)
    turn = np.full(len(a), np.nan)
    turn[bound] = motion.angular_period(law, a[bound], e[bound], m1[bound], m2[bound])
    points = turn / np.asarray(protocol.dts)[world.dt_index]
    return np.stack([a * (1 - e), a * (1 + e), points, m1, m2, *world.centre_of_mass.T], axis=-1)
