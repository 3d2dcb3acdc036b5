"""Samplers of planetary systems.

A system is a pure function of (seed, stream, index): every quantity owns a fixed draw number, so
systems can be made in any order, in any batch and on any machine with the same result, bit for
bit. ``orbits.kernel`` has the same samplers compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import inverse_cdf, motion
from orbits.arithmetic import TURN, Array, clipped, exp, shared
from orbits.elements import Elements
from orbits.inverse_cdf import BETA, GAMMA, NORMAL, PLANET_MASS_GAMMA, quantile
from orbits.philox import uniforms
from orbits.runs.choices import check_choice

SPLITS = ("train", "val", "test")
POPULATIONS = ("pretrain", "force")

# Exoplanet catalogue fit of Vafa et al. (2025), as published constants.
STAR_MASS_LOGNORMAL = (0.20045013044608198, -0.6793606241621234, 1.6271508907813628)
SAMPLES_PER_ORBIT = 4
"""Least samples per orbit without aliasing; below, its direction and shape are ambiguous."""

CORNER = {"planet_mass": 0.4, "eccentricity": 0.4}
"""Bounds of which no system of :func:`without_corner` exceeds both at once."""
POINTS_PER_TURN = 12.0
"""Least samples per orbit in :func:`identifiable`."""

N_SHARED, N_PER_PLANET = 8, 5
"""Draws of an exoplanet system: the star's, then each planet's."""

_SIGMA, _STAR_LOC, _STAR_SCALE = STAR_MASS_LOGNORMAL
_, _PLANET_LOC, _PLANET_SCALE = PLANET_MASS_GAMMA
_LN_4, _LN_40 = 1.3862943611198906, 3.6888794541139363


class Systems(NamedTuple):
    """A batch of N planetary systems with room for P planets each.

    Attributes:
        star_mass: Solar masses, [N].
        planet_mass: Solar masses, [N, P].
        semi_major_axis: AU, [N, P].
        eccentricity: [N, P].
        periapsis: Radians, [N, P].
        mean_anomaly: At time 0, radians, [N, P].
        n_planets: Number of planets that exist, of P, [N].
        centre_of_mass: AU, [N, 2].
        dt_index: Index of the protocol's time step that is used, [N].
        pinned_planet: With several planets the star rests where this planet's reflex motion
            puts it, [N].
        pinned_anomaly: The mean anomaly at which it does, radians, [N].
        coupling: Factor of the attraction between star and planet, [N]; other than 1 where
            :mod:`orbits.disturbed` says so alone.
    """

    star_mass: Array
    planet_mass: Array
    semi_major_axis: Array
    eccentricity: Array
    periapsis: Array
    mean_anomaly: Array
    n_planets: npt.NDArray[np.int64]
    centre_of_mass: Array
    dt_index: npt.NDArray[np.int64]
    pinned_planet: npt.NDArray[np.int64]
    pinned_anomaly: Array
    coupling: Array

    @classmethod
    def zeros(cls, n: int, max_planets: int) -> Systems:
        """Return ``n`` systems to be filled in."""
        return cls(
            star_mass=np.zeros(n),
            planet_mass=np.zeros((n, max_planets)),
            semi_major_axis=np.zeros((n, max_planets)),
            eccentricity=np.zeros((n, max_planets)),
            periapsis=np.zeros((n, max_planets)),
            mean_anomaly=np.zeros((n, max_planets)),
            n_planets=np.ones(n, np.int64),
            centre_of_mass=np.zeros((n, 2)),
            dt_index=np.zeros(n, np.int64),
            pinned_planet=np.zeros(n, np.int64),
            pinned_anomaly=np.zeros(n),
            coupling=np.ones(n),
        )

    def rows(self, rows: npt.NDArray) -> Systems:
        """Return the systems of some rows."""
        return Systems(*(field[rows] for field in self))

    def orbits(self, k: int) -> Elements:
        """Return the orbits of planet ``k`` = 0, 1, ... about its star, [N]."""
        return Elements(
            self.semi_major_axis[:, k],
            self.eccentricity[:, k],
            self.periapsis[:, k],
            self.mean_anomaly[:, k],
            self.planet_mass[:, k],
            self.star_mass,
        )


def stream(population: str, split: str) -> int:
    """Return the number of the random stream of a population and split.

    Raises:
        ValueError: The population or the split is unknown; the message lists the choices.
    """
    for value, choices, what in (
        (split, SPLITS, "split"),
        (population, POPULATIONS, "population"),
    ):
        check_choice(what, value, choices)
    return SPLITS.index(split) + len(SPLITS) * POPULATIONS.index(population)


@shared
def is_aliased(dt, period):
    """Tell whether a time step samples an orbit less than :data:`SAMPLES_PER_ORBIT` times."""
    return dt * SAMPLES_PER_ORBIT > period


@shared
def is_well_sampled(dt, period, points=POINTS_PER_TURN):
    """Tell whether a time step samples an orbit at least so many times."""
    return dt * points <= period


@shared
def wanted_points(u):
    """Return the least samples per orbit in :func:`free_step`."""
    return POINTS_PER_TURN * exp(_LN_4 * u)


@shared
def binary(u0, u1, u2, u3):
    """Return planet mass, star mass, axis and eccentricity of :func:`identifiable`."""
    return 0.05 * exp(_LN_40 * u0), 0.1 * exp(_LN_40 * u1), 0.5 * exp(_LN_4 * u2), 0.6 * u3


@shared
def star_mass(table, u):
    """Return the log-normal star mass of Vafa et al. (2025), clipped to [0.1, 5]."""
    normal = quantile(table, NORMAL, u)
    return clipped(_STAR_LOC + _STAR_SCALE * exp(_SIGMA * normal), 0.1, 5.0)


@shared
def exoplanet(table, u0, u1, u2):
    """Return mass, axis and eccentricity of a planet of :func:`exoplanets`."""
    mass = clipped(_PLANET_LOC + _PLANET_SCALE * quantile(table, GAMMA, u0), 1e-9, 1e-3)
    return mass, 0.3 + 31.7 * u1, quantile(table, BETA, u2)


def identifiable(
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int = 1,
    law: str = motion.NEWTON,
) -> Systems:
    """Sample binaries whose two masses can both be read from what is observed.

    Planet mass log-uniform in [0.05, 2] and star mass log-uniform in [0.1, 4] solar masses (1.6
    decades each, so that a mass cannot be mistaken for its logarithm), semi-major axis
    log-uniform in [0.5, 2] AU, eccentricity uniform in [0, 0.6], angles uniform, centre of mass
    normal with 0.1 AU. The time step is the coarsest of ``dts`` that samples the orbit at
    least 12 times, as an observer would choose it. ``max_planets`` is 1.

    Raises:
        ValueError: The seed or an index is impossible, or the law does not bind an orbit.
    """
    u = np.ascontiguousarray(uniforms(seed, stream, indices, 8).T)
    return _binaries(u, POINTS_PER_TURN, dts, law)


def free_step(
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int = 1,
    law: str = motion.NEWTON,
) -> Systems:
    """Sample the binaries of :func:`identifiable` with a time step that is drawn, too.

    The wanted number of points per orbit is log-uniform in [12, 48] and independent of everything
    else; the time step is the coarsest of ``dts`` that gives at least as many.

    Raises:
        ValueError: The seed or an index is impossible, or the law does not bind an orbit.
    """
    u = np.ascontiguousarray(uniforms(seed, stream, indices, 9).T)
    return _binaries(u, wanted_points(u[8]), dts, law)


def neutral_step(
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int = 1,
    law: str = motion.NEWTON,
) -> Systems:
    """Sample the binaries of :func:`identifiable` with a time step that does not tell the law.

    The time step is the coarsest of ``dts`` that samples a turn of the angle at least 12 times.
    How often the distance swings in such a turn is what laws differ in, so a step chosen by the
    period of the distance shows a sampling rate that tells the law. Under Newton's law both
    periods are one, and so are the systems.

    Raises:
        ValueError: The seed or an index is impossible, or the law does not bind an orbit.
    """
    u = np.ascontiguousarray(uniforms(seed, stream, indices, 8).T)
    return _binaries(u, POINTS_PER_TURN, dts, law, motion.angular_period)


def without_corner(
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int = 1,
    law: str = motion.NEWTON,
) -> Systems:
    """Sample the binaries of :func:`identifiable` that are not in a corner of their box.

    Those above both values of :data:`CORNER`, one in seven, have masses, axis and eccentricity
    drawn again, with draws of their own, until they are outside: a large eccentricity and a heavy
    planet are each met, and never together. All others keep their bits.

    Raises:
        ValueError: The seed or an index is impossible, or the law does not bind an orbit.
    """
    index = np.asarray(indices).reshape(-1)
    u, end = np.ascontiguousarray(uniforms(seed, stream, index, 8).T), 8
    left = np.flatnonzero(_is_in_corner(u))
    while left.size:
        end += 4
        u[:4, left] = uniforms(seed, stream, index[left], end)[:, end - 4 :].T
        left = left[_is_in_corner(u[:, left])]
    return _binaries(u, POINTS_PER_TURN, dts, law)


def _is_in_corner(u: Array) -> npt.NDArray[np.bool_]:
    """Tell which draws [4 or more, N] are of a system in the corner, [N]."""
    planet, _, _, eccentricity = binary(u[0], u[1], u[2], u[3])
    return (planet > CORNER["planet_mass"]) & (eccentricity > CORNER["eccentricity"])


def coarsest_step(
    world: Systems,
    points: npt.ArrayLike,
    dts: tuple[float, ...],
    law: str,
    period: Callable[..., Array] = motion.period,
) -> npt.NDArray[np.int64]:
    """Return the number of the coarsest of ``dts`` that gives ``points`` per period, [N].

    Where none does, it is the finest. For systems of one planet; ``period`` is one of
    :mod:`orbits.motion`.
    """
    orbit = world.orbits(0)
    periods = period(
        law,
        *(np.asarray(x) for x in (orbit.semi_major_axis, orbit.eccentricity, orbit.m1, orbit.m2)),
    )
    return coarsest(periods, points, dts)


def coarsest(
    periods: Array, points: npt.ArrayLike, dts: tuple[float, ...]
) -> npt.NDArray[np.int64]:
    """Return the number of the coarsest of ``dts`` that gives ``points`` per period, [N]."""
    fine_enough = is_well_sampled(
        np.asarray(dts)[None], periods[:, None], np.asarray(points)[..., None]
    )
    return np.maximum(fine_enough.sum(axis=1) - 1, 0)


def _binaries(
    u: Array,
    points: npt.ArrayLike,
    dts: tuple[float, ...],
    law: str,
    period: Callable[..., Array] = motion.period,
) -> Systems:
    """Return the systems of some draws [8 or more, N] that are observed as often per period."""
    planet, star, axis, eccentricity = binary(u[0], u[1], u[2], u[3])
    centre = quantile(inverse_cdf.load(), NORMAL, np.stack([u[6], u[7]], axis=-1))
    world = Systems.zeros(len(star), 1)._replace(
        star_mass=star,
        planet_mass=planet[:, None],
        semi_major_axis=axis[:, None],
        eccentricity=eccentricity[:, None],
        periapsis=(TURN * u[4])[:, None],
        mean_anomaly=(TURN * u[5])[:, None],
        centre_of_mass=0.1 * centre,
    )
    return world._replace(dt_index=coarsest_step(world, points, dts, law, period))


def exoplanets(
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int = 10,
    law: str = motion.NEWTON,
) -> Systems:
    """Sample systems from the exoplanet distributions of Vafa et al. (2025).

    1 to ``max_planets`` planets; star mass log-normal clipped to [0.1, 5] and planet mass gamma
    clipped to [1e-9, 1e-3] solar masses, both fitted to the exoplanet catalogue; semi-major axis
    uniform in [0.3, 32] AU; eccentricity Beta(0.867, 3.03); angles uniform; centre of mass
    standard normal in AU. One time step of ``dts`` per system with equal chances; where it would
    sample an orbit less than :data:`SAMPLES_PER_ORBIT` times, the first and shortest one instead.

    Raises:
        ValueError: The seed or an index is impossible, or the law does not bind an orbit.
    """
    table = inverse_cdf.load()
    draws = uniforms(seed, stream, indices, N_SHARED + N_PER_PLANET * max_planets)
    u = np.ascontiguousarray(draws[:, :N_SHARED].T)
    per_planet = draws[:, N_SHARED:].reshape(-1, max_planets, N_PER_PLANET)
    v = np.ascontiguousarray(per_planet.transpose(2, 0, 1))
    star = star_mass(table, u[0])
    planets, axis, eccentricity = exoplanet(table, v[0], v[1], v[2])
    n_planets = 1 + np.floor(u[1] * max_planets).astype(np.int64)
    there = np.arange(max_planets) < n_planets[:, None]
    row, _ = np.nonzero(there)
    dt_index = np.floor(u[4] * len(dts)).astype(np.int64)
    periods = motion.period(law, axis[there], eccentricity[there], planets[there], star[row])
    dt_index[row[is_aliased(np.asarray(dts)[dt_index[row]], periods)]] = 0
    return Systems(
        star_mass=star,
        planet_mass=planets,
        semi_major_axis=axis,
        eccentricity=eccentricity,
        periapsis=TURN * v[3],
        mean_anomaly=TURN * v[4],
        n_planets=n_planets,
        centre_of_mass=quantile(table, NORMAL, np.stack([u[2], u[3]], axis=-1)),
        dt_index=dt_index,
        pinned_planet=np.floor(u[5] * n_planets).astype(np.int64),
        pinned_anomaly=TURN * u[6],
        coupling=np.ones(len(star)),
    )
