"""Compiled generator of token sequences: draws, orbits, bins and interleaving.

The arithmetic is that of the numpy path (``orbits.binaries``, ``orbits.systems`` and
``orbits.observation``), compiled by numba without fast-math and without fused multiply-add: the
tokens are the same bit for bit.
Nothing is cached on disk, because numba does not notice a change in another file. Importing this
module imports numba, and the first call compiles: a few seconds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import overload, register_jitable

from orbits import arithmetic, inverse_cdf
from orbits.arithmetic import PER_TURN, SHARED, TURN, cos_sin
from orbits.binaries import POINTS_PER_TURN, binary, drawn_points, is_well_sampled
from orbits.inverse_cdf import NORMAL, quantile
from orbits.kepler import anomaly_cos_sin, frequency, rotated
from orbits.motion import NEWTON
from orbits.philox import address, philox, uniform
from orbits.systems import N_PER_PLANET, N_SHARED, Systems, exoplanet, is_aliased, star_mass
from orbits.tokens import TokenLayout, bin_number

# Division by zero must not branch, and calls must vanish, or no loop is turned into vector code.
_PLAIN: dict[str, Any] = {"error_model": "numpy", "boundscheck": False}
_INLINE: Any = {**_PLAIN, "forceinline": True}
_compiled = numba.njit(nogil=True, **_PLAIN)


@overload(arithmetic.select, jit_options=_INLINE)
def _select(condition, yes, no):
    return lambda condition, yes, no: yes if condition else no


@overload(arithmetic.bits, jit_options=_INLINE)
def _bits(x):
    return lambda x: np.float64(x).view(np.uint64)


@overload(arithmetic.from_bits, jit_options=_INLINE)
def _from_bits(pattern):
    return lambda pattern: np.uint64(pattern).view(np.float64)


for _function in SHARED:
    register_jitable(**_INLINE)(_function)

_LANES = 8
_LOW, _WORD = np.uint64(0xFFFFFFFF), np.uint64(32)


def tokens(world: Systems, layout: TokenLayout, n_points: int) -> npt.NDArray[np.uint16]:
    """Return the token sequences of systems that obey Newton's law, [N, 1 + n_points, 2]."""
    clock = np.arange(n_points // 2 + 1 + _LANES, dtype=np.float64)
    dts = np.asarray(layout.dts)
    return _observe(world, dts, clock, layout.low, layout.bins_per_au, layout.n_bins, n_points)


def _sampled(
    sample: Callable[..., None],
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int,
    law: str = NEWTON,
) -> Systems:
    """Return the same as the sampler's namesake in :mod:`orbits.protocols`, for Newton's law.

    Planets that do not exist are zero.
    """
    index = address(seed, indices)
    world = Systems.zeros(len(index), max_planets)
    key = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    sample(
        key, np.uint64(stream), index.view(np.uint64), inverse_cdf.load(), np.asarray(dts), world
    )
    return world


@_compiled
def _draw(key, stream, index, n, out):
    """Put a trajectory's first ``n`` uniform numbers into ``out``, which has room for one more."""
    for block in range((n + 1) // 2):
        words = philox(np.uint64(block), stream, index & _LOW, index >> _WORD, key[0], key[1])
        out[2 * block] = uniform(words[0], words[1])
        out[2 * block + 1] = uniform(words[2], words[3])


@_compiled
def _binaries(is_free, key, stream, indices, table, dts, world):
    u = np.empty(10)
    for i in range(len(indices)):
        _draw(key, stream, indices[i], 9 if is_free else 8, u)
        points = drawn_points(u[8]) if is_free else POINTS_PER_TURN
        planet, star, a, e = binary(u[0], u[1], u[2], u[3])
        world.planet_mass[i, 0], world.star_mass[i] = planet, star
        world.semi_major_axis[i, 0], world.eccentricity[i, 0] = a, e
        world.periapsis[i, 0], world.mean_anomaly[i, 0] = TURN * u[4], TURN * u[5]
        for j in range(2):
            world.centre_of_mass[i, j] = 0.1 * quantile(table, NORMAL, u[6 + j])
        period = 1.0 / frequency(a, planet + star)
        for k in range(1, len(dts)):
            if is_well_sampled(dts[k], period, points):
                world.dt_index[i] = k


@_compiled
def _exoplanets(key, stream, indices, table, dts, world):
    max_planets = world.planet_mass.shape[1]
    u = np.empty(N_SHARED + N_PER_PLANET * max_planets + 1)
    for i in range(len(indices)):
        # The number of planets is draw 1, in the first block; it says how many draws follow.
        _draw(key, stream, indices[i], 2, u)
        n = 1 + np.int64(np.floor(u[1] * max_planets))
        _draw(key, stream, indices[i], N_SHARED + N_PER_PLANET * n, u)
        star = star_mass(table, u[0])
        world.star_mass[i], world.n_planets[i] = star, n
        for j in range(2):
            world.centre_of_mass[i, j] = quantile(table, NORMAL, u[2 + j])
        world.dt_index[i] = np.int64(np.floor(u[4] * len(dts)))
        world.pinned_planet[i] = np.int64(np.floor(u[5] * n))
        world.pinned_anomaly[i] = TURN * u[6]
        dt = dts[world.dt_index[i]]
        for k in range(n):
            v = u[N_SHARED + N_PER_PLANET * k :]
            planet, a, e = exoplanet(table, v[0], v[1], v[2])
            world.planet_mass[i, k] = planet
            world.semi_major_axis[i, k], world.eccentricity[i, k] = a, e
            world.periapsis[i, k], world.mean_anomaly[i, k] = TURN * v[3], TURN * v[4]
            if is_aliased(dt, 1.0 / frequency(a, star + planet)):
                world.dt_index[i] = 0


@register_jitable(**_INLINE)
def _relative(turns, a, e, towards):
    """Return the planet's place relative to the star, as in ``kepler.relative_orbit``."""
    cosine, sine = anomaly_cos_sin(turns, e)
    minor = a * np.sqrt((1.0 - e) * (1.0 + e))
    return rotated(a * (cosine - e), minor * sine, towards[0], towards[1])


@_compiled
def _planet_bins(orbit, dt, clock, star, low, per_au, last, bins):
    """Fill bins[0:2] with x and y of a planet about a star at rest."""
    phase, per_year, a, e, towards = orbit
    for t in range(len(clock) // _LANES * _LANES):
        x, y = _relative(phase + dt * clock[t] * per_year, a, e, towards)
        bins[0, t] = np.int32(bin_number(x + star[0], low, per_au, last))
        bins[1, t] = np.int32(bin_number(y + star[1], low, per_au, last))


@_compiled
def _two_body_bins(orbit, dt, clock, share, centre, low, per_au, last, bins):
    """Fill bins[0:2] with x and y of the planet and bins[2:4] with those of the star."""
    phase, per_year, a, e, towards = orbit
    for t in range(len(clock) // _LANES * _LANES):
        x, y = _relative(phase + dt * clock[t] * per_year, a, e, towards)
        planet_x, planet_y = share * x, share * y
        bins[0, t] = np.int32(bin_number(planet_x + centre[0], low, per_au, last))
        bins[1, t] = np.int32(bin_number(planet_y + centre[1], low, per_au, last))
        bins[2, t] = np.int32(bin_number(planet_x - x + centre[0], low, per_au, last))
        bins[3, t] = np.int32(bin_number(planet_y - y + centre[1], low, per_au, last))


@_compiled
def _observe(world, dts, clock, low, per_au, n_bins, n_points):
    out = np.empty((len(world.star_mass), 1 + n_points, 2), np.uint16)
    bins = np.empty((4, len(clock)), np.int32)
    last = n_bins - 1.0
    for i in range(len(out)):
        n, dt = world.n_planets[i], dts[world.dt_index[i]]
        out[i, 0] = n_bins + world.dt_index[i]
        # Whole vectors: a few steps too many cost less than a remainder one by one.
        steps = (n_points + n) // (n + 1)
        padded = clock[: (steps + _LANES - 1) // _LANES * _LANES]
        place = world.centre_of_mass[i, 0], world.centre_of_mass[i, 1]
        if n > 1:
            k = world.pinned_planet[i]
            m, e = world.planet_mass[i, k], world.eccentricity[i, k]
            towards = cos_sin(world.periapsis[i, k])
            turns = world.pinned_anomaly[i] * PER_TURN
            x, y = _relative(turns, world.semi_major_axis[i, k], e, towards)
            share = m / (world.star_mass[i] + m)
            place = place[0] - share * x, place[1] - share * y
            bins[2] = np.int32(bin_number(place[0], low, per_au, last))
            bins[3] = np.int32(bin_number(place[1], low, per_au, last))
        for k in range(n):
            a, total = world.semi_major_axis[i, k], world.star_mass[i] + world.planet_mass[i, k]
            phase, towards = world.mean_anomaly[i, k] * PER_TURN, cos_sin(world.periapsis[i, k])
            orbit = phase, frequency(a, total), a, world.eccentricity[i, k], towards
            if n == 1:
                share = world.star_mass[i] / total
                _two_body_bins(orbit, dt, padded, share, place, low, per_au, last, bins)
            else:
                _planet_bins(orbit, dt, padded, place, low, per_au, last, bins)
            _interleave(bins[:2], k, n, out[i])
        _interleave(bins[2:], n, n, out[i])
    return out


@_compiled
def _interleave(bins, body, n, rows):
    """Put a body's bins into the rows of its turn: planets 0 to n - 1, then the star."""
    for t in range((len(rows) - 1 - body + n) // (n + 1)):
        row = 1 + body + t * (n + 1)
        rows[row, 0], rows[row, 1] = bins[0, t], bins[1, t]


SAMPLERS = {
    "identifiable": functools.partial(_sampled, functools.partial(_binaries, False)),
    "free_step": functools.partial(_sampled, functools.partial(_binaries, True)),
    # A turn of the angle under Newton's law is one of the distance.
    "neutral_step": functools.partial(_sampled, functools.partial(_binaries, False)),
    "exoplanets": functools.partial(_sampled, _exoplanets),
}
