"""Binaries disturbed beside their own attraction: worlds without a closed form.

A disturbance is one of a world: drag in a medium at rest, a gravitational constant that changes, a
third body that nobody sees or that is observed too, or bodies of several kinds that pull on each
other unlike their masses. The systems are those of protocol ``identifiable`` with a few draws more,
and between any two of the bodies the inverse square of the distance holds.

Of two bodies of unlike kinds places show the product of factor and masses alone. Of three they show
more: two bodies of unlike kinds fall unlike towards a third, which no masses do.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import binaries, kepler
from orbits.arithmetic import TURN, Array, exp
from orbits.elements import finite
from orbits.philox import uniforms
from orbits.systems import Systems

THIRD = 1
"""Index, in :class:`~orbits.systems.Systems`, of the planet that circles the two others."""
OBSERVED = (0, 2, 1)
"""Bodies of a triple in the order in which they are observed: its planets, then its star."""

_LN_2, _LN_4, _LN_10 = 0.6931471805599453, 1.3862943611198906, 2.302585092994046
_LN_1_6 = 0.47000362924573558


@dataclass(frozen=True)
class Disturbance:
    """Disturbances of the two bodies of a world, beside their attraction by Newton's law.

    Attributes:
        drag_rate: Per year: both bodies lose this share of their velocity in a medium at rest.
        g_rate: Change of G per year, as a share of G when a sequence begins.
        hidden_body: Whether a third body, which is not observed, circles the two.
        couplings: Factors of the attraction, one for each pair of kinds of star and planet. Each
            system has one of them with equal chance.
        triple: Whether a third body circles the two in sight. The couplings are then the rows of
            a symmetric matrix, one for each kind, and each body is of each kind with equal chance.
    """

    drag_rate: float = 0.0
    g_rate: float = 0.0
    hidden_body: bool = False
    couplings: tuple[float, ...] = (1.0,)
    triple: bool = False

    def __post_init__(self) -> None:
        finite("g_rate", self.g_rate)
        if not 0 <= self.drag_rate < np.inf:
            raise ValueError(f"drag_rate must be 0 or more, got {self.drag_rate}")
        if not self.couplings or not all(0 < x < np.inf for x in self.couplings):
            raise ValueError(f"couplings must be positive factors, got {self.couplings}")
        if self.triple and self.hidden_body:
            raise ValueError("the third body of a triple is observed; leave out hidden_body")
        if self.triple:
            _ = self.matrix  # refuses what is no matrix of kinds

    @property
    def matrix(self) -> Array:
        """Factors of the attraction between kinds, [K, K].

        Raises:
            ValueError: The couplings are not the rows of a symmetric matrix.
        """
        n_kinds = math.isqrt(len(self.couplings))
        if n_kinds**2 == len(self.couplings):
            found = np.asarray(self.couplings).reshape(n_kinds, n_kinds)
            if np.array_equal(found, found.T):
                return found
        raise ValueError(
            f"couplings of a triple must be the rows of a symmetric matrix, got {self.couplings}"
        )

    def as_plain(self) -> dict[str, Any]:
        """Return the settings as plain JSON values; of binaries without the key ``triple``."""
        plain = dataclasses.asdict(self) | {"couplings": list(self.couplings)}
        return plain if self.triple else {k: v for k, v in plain.items() if k != "triple"}


class Bodies(NamedTuple):
    """Motion of planet and star, and of the third body if there is one.

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
    that is log-uniform in [4, 8] axes, which is stable (Mardling & Aarseth 2001, equation 90). In
    a triple the axis is log-uniform in [0.5, 0.8] AU, the third body's mass in [0.25, 1] of the
    binary's, its distance uniform in [4, 5.6] axes, so that the box holds all three. The time step
    is chosen by the period that star and planet would have undisturbed.

    Raises:
        ValueError: The seed or an index is impossible.
    """
    u = np.ascontiguousarray(uniforms(seed, stream, indices, 12).T)
    world = binaries.SAMPLERS["identifiable"](seed, stream, indices, dts, 1, law)
    if disturbance.hidden_body:
        axis = 0.5 * exp(_LN_2 * u[2])
        world = _with_third(world, u[10], axis, 0.1 * exp(_LN_10 * u[8]), 4 * exp(_LN_2 * u[9]))
    if disturbance.triple:
        axis = 0.5 * exp(_LN_1_6 * u[2])
        world = _with_third(world, u[10], axis, 0.25 * exp(_LN_4 * u[8]), 4 + 1.6 * u[9])
        matrix = disturbance.matrix
        drawn = (u[11] * len(matrix) ** 3).astype(np.int64)
        kinds = np.stack(np.unravel_index(drawn, 3 * (len(matrix),)), axis=1)
        world = world._replace(n_planets=np.full(len(axis), 2), coupling=of_kinds(matrix, kinds))
    else:
        kind = np.floor(u[11] * len(disturbance.couplings)).astype(np.int64)
        world = world._replace(coupling=np.asarray(disturbance.couplings)[kind])
    period = kepler.period(*_inner(world))
    return world._replace(dt_index=binaries.coarsest(period, binaries.POINTS_PER_TURN, dts))


def _with_third(world: Systems, turn: Array, axis: Array, share: Array, ratio: Array) -> Systems:
    """Return systems with another axis, and a third body.

    Args:
        world: Binaries, N.
        turn: Its angle in turns, [N].
        axis: Of star and planet, AU, [N].
        share: Its mass over theirs, [N].
        ratio: Its distance over their axis, [N].
    """
    zero = np.zeros_like(axis)
    third = share * (world.planet_mass[:, 0] + world.star_mass)
    return world._replace(
        planet_mass=np.stack([world.planet_mass[:, 0], third], 1),
        semi_major_axis=np.stack([axis, ratio * axis], 1),
        eccentricity=np.stack([world.eccentricity[:, 0], zero], 1),
        periapsis=np.stack([world.periapsis[:, 0], zero], 1),
        mean_anomaly=np.stack([world.mean_anomaly[:, 0], TURN * turn], 1),
    )


def of_kinds(matrix: Array, kinds: npt.NDArray[np.int64]) -> Array:
    """Return the factors between bodies of some kinds, [N, B, B].

    Args:
        matrix: Factors between kinds, [K, K].
        kinds: Kind of each body, [N, B].
    """
    found = matrix[kinds[:, :, None], kinds[:, None, :]]
    found[:, range(kinds.shape[1]), range(kinds.shape[1])] = 1  # no body pulls on itself
    return np.asarray(found)


def trajectories(disturbance: Disturbance, world: Systems, times: npt.ArrayLike) -> Bodies:
    """Return the motion in the frame in which the centre of star and planet starts at rest.

    In a triple the centre of all three is at rest, so that the box holds them.

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
    if disturbance.hidden_body or disturbance.triple:
        masses.append(world.planet_mass[:, THIRD])
        outer, speed = _starts(world, THIRD, _outer_pull(world) * (m1 + m2 + masses[-1]))
        places.append(outer)
        velocities.append(speed)
    mass = np.stack(masses, axis=1)
    place, velocity = np.stack(places, axis=1), np.stack(velocities, axis=1)
    if disturbance.triple:
        part = (mass / mass.sum(axis=1, keepdims=True))[:, None]
        place, velocity = (x - part @ x for x in (place, velocity))
    found = taylor.trajectories(
        mass,
        place,
        velocity,
        times,
        _of_pairs(world, mass.shape[1]),
        disturbance.drag_rate,
        disturbance.g_rate,
    )
    return Bodies(found[0] + world.centre_of_mass[:, None, None], found[1])


def observed(disturbance: Disturbance, world: Systems, times: npt.ArrayLike) -> Array:
    """Return the places of the bodies that are observed, in turn, [N, T, 2 or 3, 2] in AU."""
    place = trajectories(disturbance, world, times).place
    return place[:, :, OBSERVED if disturbance.triple else slice(2)]


def pulling_alike(world: Systems, coupling: Array) -> Systems:
    """Return triples of other factors between pairs, and of masses that pull nearly as much.

    Args:
        world: Triples, N.
        coupling: The other factors, [N, 3, 3].
    """
    other = world._replace(coupling=coupling)
    inner = world.coupling[:, 0, 1] / coupling[:, 0, 1]
    outer = _outer_pull(world) / _outer_pull(other)
    planets = world.planet_mass * np.stack([inner, outer], axis=1)
    return other._replace(planet_mass=planets, star_mass=world.star_mass * inner)


def _of_pairs(world: Systems, bodies: int) -> Array:
    """Return the factors between all bodies, [N, B, B]."""
    if world.coupling.ndim == 3:
        return world.coupling
    coupling = np.ones((len(world.star_mass), bodies, bodies))
    coupling[:, 0, 1] = coupling[:, 1, 0] = world.coupling
    return coupling


def _inner(world: Systems) -> tuple[Array, Array]:
    """Return the axis of star and planet, and the mass that would move them as they move."""
    mass = world.star_mass + world.planet_mass[:, 0]
    return world.semi_major_axis[:, 0], _of_pairs(world, 2)[:, 0, 1] * mass


def _outer_pull(world: Systems) -> Array:
    """Return the factor with which star and planet together pull on the third body, [N]."""
    inner = np.stack([world.planet_mass[:, 0], world.star_mass], axis=1)
    return np.sum(_of_pairs(world, 3)[:, :2, 2] * inner, axis=1) / inner.sum(axis=1)


def _starts(world: Systems, k: int, mass: Array) -> tuple[Array, Array]:
    """Return place and velocity [N, 2] at time 0 on the orbit of planet ``k`` about a mass."""
    found = kepler.relative_orbit(*world.orbits(k)[:4], mass, np.zeros((len(mass), 1)))
    return found[0][:, 0], found[1][:, 0]
