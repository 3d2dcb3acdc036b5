"""Binaries disturbed beside their own attraction: worlds without a closed form.

A disturbance is one of a world: drag in a medium at rest, a gravitational constant that changes, a
third body that nobody sees, or bodies of several kinds that pull on each other unlike their
masses. The systems are those of protocol ``identifiable`` with a few draws more, and Newton's law
holds between any two of the bodies.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import binaries, kepler
from orbits.arithmetic import TURN, Array, exp
from orbits.elements import finite
from orbits.philox import uniforms
from orbits.systems import Systems

HIDDEN = 1
"""Index, in :class:`~orbits.systems.Systems`, of the planet that is not observed."""

_LN_2, _LN_10 = 0.6931471805599453, 2.302585092994046


@dataclass(frozen=True)
class Disturbance:
    """Disturbances of the two bodies of a world, beside their attraction by Newton's law.

    Attributes:
        drag_rate: Per year: both bodies lose this share of their velocity in a medium at rest.
        g_rate: Change of G per year, as a share of G when a sequence begins.
        hidden_body: Whether a third body, which is not observed, circles the two.
        couplings: Factors of the attraction, one for each pair of kinds of star and planet. Each
            system has one of them with equal chance.
    """

    drag_rate: float = 0.0
    g_rate: float = 0.0
    hidden_body: bool = False
    couplings: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        finite("g_rate", self.g_rate)
        if not 0 <= self.drag_rate < np.inf:
            raise ValueError(f"drag_rate must be 0 or more, got {self.drag_rate}")
        if not self.couplings or not all(0 < x < np.inf for x in self.couplings):
            raise ValueError(f"couplings must be positive factors, got {self.couplings}")

    def as_plain(self) -> dict[str, Any]:
        """Return the settings as plain JSON values."""
        return dataclasses.asdict(self) | {"couplings": list(self.couplings)}


class Bodies(NamedTuple):
    """Motion of planet and star, and of the hidden body if there is one.

    Attributes:
        place: AU, [N, T, B, 2].
        velocity: AU / year, [N, T, B, 2].
    """

    place: Array
    velocity: Array


def sample(
    disturbance: Disturbance,
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int = 1,
    law: str = "newton",
) -> Systems:
    """Sample the binaries of ``identifiable``, and their disturbances.

    A hidden body makes the axis log-uniform in [0.5, 1] AU; its mass is log-uniform in [0.1, 1]
    of the binary's, and it circles the binary's centre of mass, the same way round, at a distance
    that is log-uniform in [4, 8] axes, which is stable (Mardling & Aarseth 2001, equation 90).
    The time step is chosen by the period that star and planet would have undisturbed.

    Raises:
        ValueError: The seed or an index is impossible.
    """
    u = np.ascontiguousarray(uniforms(seed, stream, indices, 12).T)
    world = binaries.SAMPLERS["identifiable"](seed, stream, indices, dts, 1, law)
    if disturbance.hidden_body:
        axis = 0.5 * exp(_LN_2 * u[2])
        pair = world.planet_mass[:, 0] + world.star_mass
        zero = np.zeros_like(axis)
        world = world._replace(
            planet_mass=np.stack([world.planet_mass[:, 0], 0.1 * exp(_LN_10 * u[8]) * pair], 1),
            semi_major_axis=np.stack([axis, 4 * exp(_LN_2 * u[9]) * axis], 1),
            eccentricity=np.stack([world.eccentricity[:, 0], zero], 1),
            periapsis=np.stack([world.periapsis[:, 0], zero], 1),
            mean_anomaly=np.stack([world.mean_anomaly[:, 0], TURN * u[10]], 1),
        )
    kind = np.floor(u[11] * len(disturbance.couplings)).astype(np.int64)
    world = world._replace(coupling=np.asarray(disturbance.couplings)[kind])
    period = kepler.period(*_inner(world))
    return world._replace(dt_index=binaries.coarsest(period, binaries.POINTS_PER_TURN, dts))


def trajectories(disturbance: Disturbance, world: Systems, times: npt.ArrayLike) -> Bodies:
    """Return the motion in the frame in which the centre of star and planet starts at rest.

    Args:
        disturbance: Disturbance of the world.
        world: N systems of :func:`sample`.
        times: Times in years, [N, T]; none negative, none before its predecessor.

    Raises:
        ValueError: The times are out of order, or too late for the disturbance.
    """
    from orbits import taylor  # imports numba

    m1, m2 = world.planet_mass[:, 0], world.star_mass
    masses = [m1, m2]
    place, velocity = _starts(world, 0, _inner(world)[1])
    share = (m1 / (m1 + m2))[:, None]
    places, velocities = ([(1 - share) * x, -share * x] for x in (place, velocity))
    if disturbance.hidden_body:
        masses.append(world.planet_mass[:, HIDDEN])
        outer, speed = _starts(world, HIDDEN, m1 + m2 + masses[-1])
        places.append(outer)
        velocities.append(speed)
    mass = np.stack(masses, axis=1)
    coupling = np.ones((*mass.shape, mass.shape[1]))
    coupling[:, 0, 1] = coupling[:, 1, 0] = world.coupling
    found = taylor.trajectories(
        mass,
        np.stack(places, axis=1),
        np.stack(velocities, axis=1),
        times,
        coupling,
        disturbance.drag_rate,
        disturbance.g_rate,
    )
    return Bodies(found[0] + world.centre_of_mass[:, None, None], found[1])


def _inner(world: Systems) -> tuple[Array, Array]:
    """Return the axis of star and planet, and the mass that would move them as they move."""
    mass = world.star_mass + world.planet_mass[:, 0]
    return world.semi_major_axis[:, 0], world.coupling * mass


def _starts(world: Systems, k: int, mass: Array) -> tuple[Array, Array]:
    """Return place and velocity [N, 2] at time 0 on the orbit of planet ``k`` about a mass."""
    found = kepler.relative_orbit(*world.orbits(k)[:4], mass, np.zeros((len(mass), 1)))
    return found[0][:, 0], found[1][:, 0]
