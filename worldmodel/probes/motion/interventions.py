"""Interventions on the simulator: one mass is set to another value, all else stays as it was.

Every value is one of a grid over the range that the held-out population itself shows, the same
for all systems, so no changed mass lies outside the protocol's own range. Elements, angles, the
other mass, the centre of mass and the time step are kept, and with them the moment of every
observation; the period follows from the masses. A changed world counts only if its orbits are
observed as often per turn as some orbit of the population: the time step, which an observer
would have chosen by the period, must not give the change away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orbits import motion
from orbits.arithmetic import Array
from orbits.protocols import Protocol
from orbits.systems import Systems

MASSES = ("m1", "m2")
"""Masses that can be changed: that of the first planet, and of the star."""

GRID = 5


@dataclass(frozen=True)
class Intervention:
    """Systems of which one mass was changed.

    Attributes:
        changed: ``m1`` or ``m2``.
        mass: New value of the mass in every system, solar masses.
        world: The changed systems, N.
        counts: Whether each system is observed as the population is, [N].
    """

    changed: str
    mass: float
    world: Systems
    counts: npt.NDArray[np.bool_]


def interventions(protocol: Protocol, world: Systems) -> Iterator[Intervention]:
    """Yield the interventions on some systems: each mass at each value of its grid."""
    usual = _points_per_orbit(protocol, world)
    for changed in MASSES:
        masses = world.planet_mass[:, 0] if changed == "m1" else world.star_mass
        for mass in np.geomspace(masses.min(), masses.max(), GRID):
            other = with_mass(world, changed, float(mass))
            often = _points_per_orbit(protocol, other)
            unusual = (often < np.nanmin(usual)) | (often > np.nanmax(usual))
            yield Intervention(changed, float(mass), other, ~np.any(unusual, axis=1))


def with_mass(world: Systems, changed: str, mass: float) -> Systems:
    """Return systems whose first planet (``m1``) or star (``m2``) has another mass."""
    if changed == "m1":
        planets = world.planet_mass.copy()
        planets[:, 0] = mass
        return world._replace(planet_mass=planets)
    if changed == "m2":
        return world._replace(star_mass=np.full_like(world.star_mass, mass))
    raise ValueError(f"unknown mass {changed!r}; choose from {', '.join(MASSES)}")


def _points_per_orbit(protocol: Protocol, world: Systems) -> Array:
    """Return the samples of each planet per turn, [N, P]; NaN where there is none."""
    counts = np.full(world.planet_mass.shape, np.nan)
    there = np.arange(world.planet_mass.shape[1]) < world.n_planets[:, None]
    row, _ = np.nonzero(there)
    periods = motion.period(
        protocol.law,
        world.semi_major_axis[there],
        world.eccentricity[there],
        world.planet_mass[there],
        world.star_mass[row],
    )
    counts[there] = periods / np.asarray(protocol.dts)[world.dt_index[row]]
    return counts
