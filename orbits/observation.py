"""Observation of a system: the place of every body at every time step, bodies in turn.

The specification of the compiled ``orbits.kernel``, which keeps the order of every operation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits import disturbed, motion
from orbits.arithmetic import Array
from orbits.disturbed import Disturbance
from orbits.systems import Systems
from orbits.tokens import interleave

DT_ROW, STAR = -1, 0
"""Body numbers of the time-step row and of the star; planet k has number k = 1, 2, ..."""


def observe(
    world: Systems,
    dts: tuple[float, ...],
    n_points: int,
    law: str,
    interacting: bool = False,
    disturbance: Disturbance | None = None,
) -> tuple[Array, npt.NDArray[np.int8]]:
    """Return the coordinates [N, 1 + n_points, 2] in AU and the body numbers [N, 1 + n_points].

    Row 0 is the time-step row; its coordinates are zero. Unless they are ``interacting``, planets
    move independently of each other: one planet and its star about their centre of mass, with or
    without a ``disturbance``, which may bring a third body; several about a star at rest (Vafa et
    al. 2025).
    """
    coordinates = np.zeros((len(world.star_mass), 1 + n_points, 2))
    body = np.full(coordinates.shape[:2], DT_ROW, np.int8)
    for n in np.unique(world.n_planets):
        rows = np.flatnonzero(world.n_planets == n)
        alike = world.rows(rows)
        when = times(alike, dts, n_points, int(n))
        if interacting:
            points = _interacting(alike, int(n), when)
        elif disturbance is not None:
            points = disturbed.observed(disturbance, alike, when)
        else:
            points = _points(alike, int(n), when, law)
        coordinates[rows, 1:] = interleave(points, n_points)
        body[rows, 1:] = np.tile(np.r_[1 : n + 1, STAR].astype(np.int8), points.shape[1])[:n_points]
    return coordinates, body


def times(world: Systems, dts: tuple[float, ...], n_points: int, n_planets: int) -> Array:
    """Return the times in years at which the points are taken, [N, steps]."""
    steps = -(-n_points // (n_planets + 1))
    return np.asarray(dts)[world.dt_index][:, None] * np.arange(steps)


def relative(
    world: Systems, k: int, mean_anomaly: Array, times: Array, law: str
) -> tuple[Array, Array]:
    """Return position and velocity [N, steps, 2] of planet ``k`` = 0, 1, ... from the star."""
    return motion.relative_orbit(law, world.orbits(k)._replace(mean_anomaly=mean_anomaly), times)


def _points(world: Systems, n: int, times: Array, law: str) -> Array:
    """Return the places of ``n`` planets and the star, [N, steps, n + 1, 2]."""
    points = np.empty((*times.shape, n + 1, 2))
    for k in range(n):
        points[:, :, k], _ = relative(world, k, world.mean_anomaly[:, k], times, law)
    if n == 1:
        share = world.star_mass / (world.star_mass + world.planet_mass[:, 0])
        planet = share[:, None, None] * points[:, :, 0]
        points[:, :, 1] = planet - points[:, :, 0]
        points[:, :, 0] = planet
        return points + world.centre_of_mass[:, None, None]
    star = world.centre_of_mass + _reflex(world, law)
    points[:, :, n] = 0
    return points + star[:, None, None]


def _interacting(world: Systems, n: int, times: Array) -> Array:
    """Return the places of ``n`` planets and the star that pull on each other, as ``_points``."""
    from orbits import nbody  # imports numba

    positions, _ = nbody.trajectories(world, times)
    return positions[:, :, [*range(1, n + 1), 0]] + world.centre_of_mass[:, None, None]


def _reflex(world: Systems, law: str) -> Array:
    """Return the resting star's offset from the centre of mass, [N, 2]."""
    offset = np.zeros((len(world.star_mass), 2))
    for k in np.unique(world.pinned_planet):
        rows = np.flatnonzero(world.pinned_planet == k)
        chosen = world.rows(rows)
        planet, _ = relative(chosen, k, chosen.pinned_anomaly, np.zeros((len(rows), 1)), law)
        share = chosen.planet_mass[:, k] / (chosen.star_mass + chosen.planet_mass[:, k])
        offset[rows] = -share[:, None] * planet[:, 0]
    return offset
