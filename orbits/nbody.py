"""N-body motion: Newton's law between all bodies, by a symplectic integrator.

The systems of the other samplers cannot be used here: four in five have crossing orbits and
would be chaotic. :func:`hill_stable` samples systems whose planets keep their distance.

Errors in AU against rebound's IAS15 (1.1 s), whose own rounding is about 1e-10 AU after a
thousand orbits of Mercury: the Sun and its eight planets over 243 years, the worst of three sets
of angles; and the worst of 40 Hill-stable systems over 50 years.

===============  =======  ===============  =======  =====  ==============  ===========
steps per orbit  time     relative energy  Mercury  Venus  outer planets   Hill-stable
===============  =======  ===============  =======  =====  ==============  ===========
 8               0.08 s   4e-13            4e-7     8e-9   4e-10           2e-5
12               0.12 s   7e-14            6e-8     2e-9   6e-11           1e-6
20 (default)     0.19 s   9e-14            3e-10    5e-11  2e-10           1e-9
===============  =======  ===============  =======  =====  ==============  ===========
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from orbits import kepler
from orbits.arithmetic import TURN, Array, exp
from orbits.binaries import POINTS_PER_TURN, coarsest
from orbits.elements import ascending_times
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.nbody_kernel import integrate
from orbits.philox import uniforms
from orbits.systems import Systems

HILL_RADII = 10.0  # between one planet's apocentre and the next one's pericentre
OUTERMOST = 32.0  # AU
ENERGY_TOLERANCE = 1e-7  # relative; a close encounter leaves it by orders of magnitude


def trajectories(
    world: Systems, times: npt.ArrayLike, steps_per_orbit: int = 20
) -> tuple[Array, Array]:
    """Return the motion of stars and planets about their barycentres.

    Args:
        world: N systems with room for P planets. The elements are those of each planet and the
            star alone at time 0, as in :func:`orbits.kepler.relative_orbit`.
        times: Times in years, [N, T]; none negative, none before its predecessor.
        steps_per_orbit: Integration steps per period of the innermost planet, at least 4.

    Returns:
        Positions in AU and velocities in AU / year, each [N, T, 1 + P, 2]: the star first, then
        the planets in their order; nan for planets that do not exist.

    Raises:
        ValueError: Times or steps are out of range, or the energy of a system changed by more
            than 1e-7 of itself: its planets met too closely.
    """
    n = len(world.star_mass)
    times = ascending_times(times, n)
    if steps_per_orbit < 4:
        raise ValueError(f"steps_per_orbit must be at least 4, got {steps_per_orbit}")
    shape = (*times.shape, 1 + world.planet_mass.shape[1], 2)
    positions, velocities = np.full(shape, np.nan), np.full(shape, np.nan)
    for i in range(n):
        # Jacobi coordinates need the planets by distance.
        planets = np.argsort(world.semi_major_axis[i, : world.n_planets[i]])
        if not planets.size:
            raise ValueError(f"trajectory {i} has no planet")
        bodies = np.r_[0, 1 + planets]
        mass = np.r_[world.star_mass[i], world.planet_mass[i, planets]]
        start, speed, period = _start(world, i, planets)
        at_rest = speed - mass @ speed / mass.sum()
        first = _energy(mass, start[None], at_rest[None])
        place, motion = np.empty((2, times.shape[1], len(bodies), 2))
        step = period / steps_per_orbit
        bound = integrate(GRAVITATIONAL_CONSTANT, mass, start, speed, times[i], step, place, motion)
        energy = _energy(mass, place, motion) if bound else np.array([np.nan])
        if not np.all(np.abs(energy - first) <= ENERGY_TOLERANCE * np.abs(first)):
            raise ValueError(
                f"the planets of trajectory {i} met too closely for {steps_per_orbit} steps per "
                "orbit; take systems of nbody.hill_stable"
            )
        positions[i][:, bodies], velocities[i][:, bodies] = place, motion
    return positions, velocities


def hill_stable(
    seed: int, stream: int, indices: npt.ArrayLike, dts: tuple[float, ...], max_planets: int = 5
) -> Systems:
    """Sample systems of 2 to ``max_planets`` planets that keep their distance.

    Star mass log-uniform in [0.5, 2] and planet masses log-uniform in [1e-5, 1e-3] solar masses;
    eccentricities uniform in [0, 0.08]; coplanar and prograde, angles uniform. The innermost
    semi-major axis is log-uniform in [0.3, 1.2] AU, and each next one log-uniform between 1 and
    1.5 times the least at which pericentre and apocentre are 10 mutual Hill radii apart; planets
    beyond 32 AU are left out. Two planets are stable from 2 sqrt(3) Hill radii on (Gladman 1993),
    several for very long from about 10 (Chambers et al. 1996, Icarus 119, 261). The time step is
    the coarsest of ``dts`` that samples the innermost orbit at least 12 times. The centre of mass
    is at rest in the origin.

    Raises:
        ValueError: The seed or an index is impossible, or ``max_planets`` is below 2.
    """
    if max_planets < 2:
        raise ValueError(f"max_planets must be at least 2, got {max_planets}")
    draws = uniforms(seed, stream, indices, 2 + 5 * max_planets)
    star = _log_uniform(draws[:, 0], 0.5, 2.0)
    u = np.ascontiguousarray(draws[:, 2:].reshape(-1, max_planets, 5).transpose(2, 0, 1))
    planet = _log_uniform(u[0], 1e-5, 1e-3)
    eccentricity = 0.08 * u[1]
    axis = np.empty_like(planet)
    axis[:, 0] = _log_uniform(u[2, :, 0], 0.3, 1.2)
    for k in range(1, max_planets):
        # a_k (1 - e_k) - a_(k-1) (1 + e_(k-1)) = 10 hill (a_k + a_(k-1)) / 2, solved for the ratio
        hill = np.cbrt((planet[:, k - 1] + planet[:, k]) / (3 * star))
        gap = HILL_RADII / 2 * hill
        ratio = (1 + eccentricity[:, k - 1] + gap) / (1 - eccentricity[:, k] - gap)
        axis[:, k] = axis[:, k - 1] * ratio * _log_uniform(u[2, :, k], 1.0, 1.5)
    wanted = 2 + np.floor(draws[:, 1] * (max_planets - 1)).astype(np.int64)
    n_planets = np.minimum(wanted, (axis <= OUTERMOST).sum(axis=1))
    periods = kepler.period(axis[:, 0], star + planet[:, 0])
    n = len(star)
    return Systems(
        star_mass=star,
        planet_mass=planet,
        semi_major_axis=axis,
        eccentricity=eccentricity,
        periapsis=TURN * u[3],
        mean_anomaly=TURN * u[4],
        n_planets=n_planets,
        centre_of_mass=np.zeros((n, 2)),
        dt_index=coarsest(periods, POINTS_PER_TURN, dts),
        pinned_planet=np.zeros(n, np.int64),
        pinned_anomaly=np.zeros(n),
        coupling=np.ones(n),
    )


def _log_uniform(u: Array, low: float, high: float) -> Array:
    return low * exp(math.log(high / low) * u)


def _start(
    world: Systems, i: int, planets: npt.NDArray[np.intp]
) -> tuple[Array, Array, np.float64]:
    """Return astrocentric positions and velocities, star included, and the shortest period."""
    axis = world.semi_major_axis[i, planets]
    total = world.star_mass[i] + world.planet_mass[i, planets]
    motion = kepler.relative_orbit(
        axis,
        world.eccentricity[i, planets],
        world.periapsis[i, planets],
        world.mean_anomaly[i, planets],
        total,
        np.zeros((len(planets), 1)),
    )
    position, velocity = (np.concatenate([np.zeros((1, 2)), x[:, 0]]) for x in motion)
    return position, velocity, kepler.period(axis, total).min()


def _energy(mass: Array, positions: Array, velocities: Array) -> Array:
    """Return the total energy of positions and velocities [T, B, 2], shape [T]."""
    energy = 0.5 * np.sum(mass * np.sum(velocities**2, axis=-1), axis=-1)
    for i in range(len(mass)):
        for j in range(i):
            distance = np.sqrt(np.sum((positions[:, i] - positions[:, j]) ** 2, axis=-1))
            energy -= GRAVITATIONAL_CONSTANT * mass[i] * mass[j] / distance
    return energy
