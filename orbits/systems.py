"""Planetary systems, and the sampler of those of the exoplanet catalogue.

A system is a pure function of (seed, stream, index): every quantity owns a fixed draw number, so
systems can be made in any order, in any batch and on any machine with the same result, bit for
bit. ``orbits.kernel`` has the same samplers compiled.
"""

from __future__ import annotations

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

N_SHARED, N_PER_PLANET = 8, 5
"""Draws of an exoplanet system: the star's, then each planet's."""

_SIGMA, _STAR_LOC, _STAR_SCALE = STAR_MASS_LOGNORMAL
_, _PLANET_LOC, _PLANET_SCALE = PLANET_MASS_GAMMA


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
            :mod:`orbits.disturbed` says so alone. Of triples those between planet, star and third
            body, [N, 3, 3].
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
def star_mass(table, u):
    """Return the log-normal star mass of Vafa et al. (2025), clipped to [0.1, 5]."""
    normal = quantile(table, NORMAL, u)
    return clipped(_STAR_LOC + _STAR_SCALE * exp(_SIGMA * normal), 0.1, 5.0)


@shared
def exoplanet(table, u0, u1, u2):
    """Return mass, axis and eccentricity of a planet of :func:`exoplanets`."""
    mass = clipped(_PLANET_LOC + _PLANET_SCALE * quantile(table, GAMMA, u0), 1e-9, 1e-3)
    return mass, 0.3 + 31.7 * u1, quantile(table, BETA, u2)


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
