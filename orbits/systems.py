"""Samplers of planetary systems, and the counter-based random numbers they draw from.

A system is a pure function of (seed, stream, index): every quantity owns a fixed draw number, so
systems can be made in any order and in any batch with the same result, bit for bit. Between
machines the last bits of a float may differ, because numpy chooses its exp, log, sin and cos by
the CPU; that reaches a token only when a coordinate lies within rounding of a bin's edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from orbits import kepler

Array = npt.NDArray[np.float64]

# Exoplanet catalogue fits of Vafa et al. (2025), as published constants.
STAR_MASS_LOGNORMAL = (0.20045013044608198, -0.6793606241621234, 1.6271508907813628)
PLANET_MASS_GAMMA = (0.3202016451781988, 6.009814999999999e-08, 0.001105594954623053)
ECCENTRICITY_BETA = (0.867, 3.03)  # Kipping (2013), arXiv:1306.4982


@dataclass(frozen=True)
class Systems:
    """A batch of N planetary systems with room for P planets each.

    Attributes:
        star_mass: Solar masses, [N].
        planet_mass: Solar masses, [N, P].
        semi_major_axis: AU, [N, P].
        eccentricity: [N, P].
        periapsis: Radians, [N, P].
        mean_anomaly: At time 0, radians, [N, P].
        n_planets: How many of the P planets exist, [N].
        centre_of_mass: AU, [N, 2].
        dt_index: Which of the protocol's time steps is used, [N].
        pinned_planet: With several planets the star rests where this planet's reflex motion
            puts it, [N].
        pinned_anomaly: The mean anomaly at which it does, radians, [N].
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

    def __getitem__(self, rows: npt.NDArray) -> Systems:
        """Return the systems of some rows."""
        return Systems(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def philox4x32(
    counter: npt.NDArray[np.uint32], key: tuple[int, int], rounds: int = 10
) -> npt.NDArray[np.uint32]:
    """Philox4x32 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").

    Args:
        counter: Shape [..., 4].
        key: Two 32-bit words.
        rounds: Number of rounds; 10 is the standard generator.

    Returns:
        Four random words per counter, shape [..., 4].
    """
    low = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    c0, c1, c2, c3 = (counter[..., i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    for _ in range(rounds):
        product0 = c0 * np.uint64(0xD2511F53)
        product1 = c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            (product1 >> shift) ^ c1 ^ np.uint64(k0),
            product1 & low,
            (product0 >> shift) ^ c3 ^ np.uint64(k1),
            product0 & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def uniforms(seed: int, stream: int, indices: npt.ArrayLike, n: int) -> Array:
    """Return ``n`` uniform numbers in (0, 1) for each trajectory index, shape [N, n].

    Args:
        seed: The dataset's seed, 0 <= seed < 2^64.
        stream: Which population and split, so that none shares a draw with another.
        indices: Trajectory indices, shape [N].
        n: Numbers per trajectory; number k is the same whatever ``n`` is.

    Raises:
        ValueError: The seed or an index is negative or too large.
    """
    index = np.asarray(indices, dtype=np.int64)
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be in [0, 2^64), got {seed}")
    if index.size and index.min() < 0:
        raise ValueError(f"trajectory index must not be negative, got {index.min()}")
    blocks = (n + 1) // 2
    counter = np.empty((index.size, blocks, 4), dtype=np.uint32)
    counter[..., 0] = np.arange(blocks)
    counter[..., 1] = stream
    counter[..., 2] = (index & 0xFFFFFFFF)[:, None]
    counter[..., 3] = (index >> 32)[:, None]
    words = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1, 2 * blocks, 2)
    high, low = (words[..., i].astype(np.uint64) for i in range(2))
    mantissa = (high >> np.uint64(5)) * np.uint64(2**26) + (low >> np.uint64(6))
    # The largest mantissa plus a half rounds to 2^53: without the bound, one draw in 2^53 is 1.
    return np.minimum((mantissa.astype(np.float64) + 0.5) * 2.0**-53, 1 - 2.0**-53)[:, :n]


def identifiable(seed: int, stream: int, indices: npt.ArrayLike, dts: tuple[float, ...]) -> Systems:
    """Sample binaries whose two masses can both be read from what is observed.

    Planet mass log-uniform in [0.05, 2] and star mass log-uniform in [0.1, 4] solar masses (1.6
    decades each, so that a mass cannot be mistaken for its logarithm), semi-major axis
    log-uniform in [0.5, 2] AU, eccentricity uniform in [0, 0.6], angles uniform, centre of mass
    normal with 0.1 AU. The time step is the coarsest of ``dts`` that samples the orbit at
    least 12 times, as an observer would choose it.
    """
    u = np.ascontiguousarray(uniforms(seed, stream, indices, 8).T)
    planet_mass, star_mass = _log_uniform(u[0], 0.05, 2.0), _log_uniform(u[1], 0.1, 4.0)
    semi_major_axis = _log_uniform(u[2], 0.5, 2.0)
    periods = kepler.period(semi_major_axis, planet_mass + star_mass)
    fine_enough = np.asarray(dts)[None, :] * 12 <= periods[:, None]
    n = len(star_mass)
    return Systems(
        star_mass=star_mass,
        planet_mass=planet_mass[:, None],
        semi_major_axis=semi_major_axis[:, None],
        eccentricity=(0.6 * u[3])[:, None],
        periapsis=(2 * np.pi * u[4])[:, None],
        mean_anomaly=(2 * np.pi * u[5])[:, None],
        n_planets=np.ones(n, np.int64),
        centre_of_mass=0.1 * special.ndtri(np.stack([u[6], u[7]], axis=-1)),
        dt_index=np.maximum(fine_enough.sum(axis=1) - 1, 0),
        pinned_planet=np.zeros(n, np.int64),
        pinned_anomaly=np.zeros(n),
    )


def exoplanets(
    seed: int, stream: int, indices: npt.ArrayLike, dts: tuple[float, ...], max_planets: int = 10
) -> Systems:
    """Sample systems from the exoplanet distributions of Vafa et al. (2025).

    1 to ``max_planets`` planets; star mass log-normal clipped to [0.1, 5] and planet mass gamma
    clipped to [1e-9, 1e-3] solar masses, both fitted to the exoplanet catalogue; semi-major axis
    uniform in [0.3, 32] AU; eccentricity Beta(0.867, 3.03); angles uniform; centre of mass
    standard normal in AU; one time step of ``dts`` per system with equal chances.
    """
    draws = uniforms(seed, stream, indices, 8 + 5 * max_planets)
    shared = np.ascontiguousarray(draws[:, :8].T)
    per_planet = np.ascontiguousarray(draws[:, 8:].reshape(-1, max_planets, 5).transpose(2, 0, 1))
    sigma, loc, scale = STAR_MASS_LOGNORMAL
    star_mass = np.clip(loc + scale * np.exp(sigma * special.ndtri(shared[0])), 0.1, 5.0)
    shape, loc, scale = PLANET_MASS_GAMMA
    planet_mass = np.clip(loc + scale * special.gammaincinv(shape, per_planet[0]), 1e-9, 1e-3)
    n_planets = 1 + np.floor(shared[1] * max_planets).astype(np.int64)
    return Systems(
        star_mass=star_mass,
        planet_mass=planet_mass,
        semi_major_axis=0.3 + 31.7 * per_planet[1],
        eccentricity=special.betaincinv(*ECCENTRICITY_BETA, per_planet[2]),
        periapsis=2 * np.pi * per_planet[3],
        mean_anomaly=2 * np.pi * per_planet[4],
        n_planets=n_planets,
        centre_of_mass=special.ndtri(np.stack([shared[2], shared[3]], axis=-1)),
        dt_index=np.floor(shared[4] * len(dts)).astype(np.int64),
        pinned_planet=np.floor(shared[5] * n_planets).astype(np.int64),
        pinned_anomaly=2 * np.pi * shared[6],
    )


def _log_uniform(u: Array, low: float, high: float) -> Array:
    return np.asarray(low * np.exp(np.log(high / low) * u))
