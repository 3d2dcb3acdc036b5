"""References of rollouts: bodies at rest or on a straight line, and conserved quantities.

Bodies take turns, planets first, then the star; so with n planets a body's previous point is the
one n + 1 rows before. A step counts in a body's own points: one step ahead is its next point.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits import laws, observation
from orbits.arithmetic import Array
from orbits.laws import reduced_mass
from orbits.protocols import Protocol
from orbits.systems import Systems

Integers = npt.NDArray[np.int64]


def turn(body: npt.NDArray) -> Integers:
    """Return the number of rows between two points of one body, [N], from body numbers [N, T]."""
    return body.max(axis=1).astype(np.int64) + 1


def steps_ahead(body: npt.NDArray, n_prompt: int) -> Integers:
    """Return the number of steps from each body's last point in the prompt to each row, [N, T].

    Args:
        body: Body numbers, [N, T].
        n_prompt: Rows of the prompt, the time-step row included; these rows have 0 steps.
    """
    beyond = np.arange(body.shape[1]) - n_prompt
    return np.where(beyond >= 0, beyond // turn(body)[:, None] + 1, 0)


def last_points(points: Array, body: npt.NDArray, steps: Integers) -> dict[str, Array]:
    """Return the expected places of a body by its last points alone, each [N, T, 2].

    Args:
        points: Observed places in AU, [N, T, 2].
        body: Body numbers, [N, T].
        steps: Number of steps that each row is ahead of the prompt, [N, T].

    Returns:
        ``copy last``: the body rests where it was seen last. ``linear extrapolation``: it goes on
        at the pace of its last two points. NaN where they were not observed.
    """
    back = turn(body)[:, None]
    row = np.arange(points.shape[1])
    last = _at(points, row - steps * back)
    before = _at(points, row - (steps + 1) * back)
    return {
        "copy last": last,
        "linear extrapolation": last + steps[..., None] * (last - before),
    }


def _at(points: Array, rows: Integers) -> Array:
    """Return some rows of each sequence, NaN where there is none: row 0 shows no body."""
    places = np.take_along_axis(points, np.maximum(rows, 0)[..., None], axis=1)
    return np.where(rows[..., None] >= 1, places, np.nan)


def conserved(law: str, relative: Array, dt: Array, m1: Array, m2: Array) -> dict[str, Array]:
    """Return the conserved quantities of a two-body orbit, from places alone, each [N, S - 2].

    Velocities are central differences, so the first and the last step have none.

    Args:
        law: Name of the force law.
        relative: Planet - star in AU at S equally spaced times, [N, S, 2].
        dt: Time step in years, [N].
        m1: Planet mass in solar masses, [N].
        m2: Star mass in solar masses, [N].

    Returns:
        ``energy`` per reduced mass, AU^2 / year^2, unless the law has no closed-form potential;
        ``angular_momentum`` per reduced mass, AU^2 / year.
    """
    velocity = (relative[:, 2:] - relative[:, :-2]) / (2 * dt[:, None, None])
    place = relative[:, 1:-1]
    quantities = {"angular_momentum": _cross(place, velocity)}
    if laws.get(law).potential is not None:
        quantities["energy"] = _energy(law, place, velocity, m1[:, None], m2[:, None])
    return quantities


def deviations(
    protocol: Protocol, world: Systems, points: Array, body: npt.NDArray, n_prompt: int
) -> dict[str, Array]:
    """Return the errors of a rollout in the energy and the angular momentum of the true orbit.

    Angular momentum counts in that of the true orbit, energy in the kinetic energy of the
    circular orbit of the same semi-major axis: under Newton's law that is the orbit's own energy
    without its sign, and under every law it has no arbitrary zero.

    Args:
        protocol: The protocol of observation; its planets do not pull on each other.
        world: The systems, N.
        points: Places in AU, [N, T, 2]: a prompt that was observed, and what followed.
        body: Body numbers, [N, T].
        n_prompt: Rows of the prompt.

    Returns:
        By the names of :func:`conserved`, [N, H, P]: steps ahead from 1 on, planet by planet; NaN
        where no velocity is known and where there is no planet.
    """
    period = turn(body)
    shape = (len(points), int(steps_ahead(body, n_prompt).max()), int(period.max()) - 1)
    arrays: dict[str, Array] = {}
    for n in np.unique(period - 1):
        rows = np.flatnonzero(period == n + 1)
        alike, dt = world.rows(rows), np.asarray(protocol.dts)[world.dt_index[rows]]
        steps = (points.shape[1] - 1) // (n + 1)
        places = points[rows, 1 : 1 + steps * (n + 1)].reshape(len(rows), steps, n + 1, 2)
        first = -(-(n_prompt - 1) // (n + 1))  # the first step of which nothing was observed
        for k in range(n):
            m1, m2 = alike.planet_mass[:, k], alike.star_mass
            truth = _truth(protocol.law, alike, k)
            rolled = conserved(protocol.law, places[:, :, k] - places[:, :, n], dt, m1, m2)
            for name, value in rolled.items():
                true, unit = truth[name]
                missed = ((value - true[:, None]) / unit[:, None])[:, first - 1 :]
                array = arrays.setdefault(name, np.full(shape, np.nan))
                array[rows, : missed.shape[1], k] = missed
    return arrays


def _truth(law: str, world: Systems, k: int) -> dict[str, tuple[Array, Array]]:
    """Return the true value and the unit of the conserved quantities of planet ``k``, each [N]."""
    m1, m2 = world.planet_mass[:, k], world.star_mass
    start = np.zeros((len(m2), 1))
    place, velocity = observation.relative(world, k, world.mean_anomaly[:, k], start, law)
    momentum = _cross(place, velocity)[:, 0]
    quantities = {"angular_momentum": (momentum, momentum)}
    if laws.get(law).potential is not None:
        axis = world.semi_major_axis[:, k]
        circular = axis * laws.get(law).relative_acceleration(axis, m1, m2) / 2
        energy = _energy(law, place, velocity, m1[:, None], m2[:, None])[:, 0]
        quantities["energy"] = (energy, circular)
    return quantities


def _cross(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _energy(law: str, place: Array, velocity: Array, m1: Array, m2: Array) -> Array:
    # A rollout may put both bodies into one bin, where a potential has no value.
    distance = np.maximum(np.sqrt(np.sum(place**2, axis=-1)), 1e-9)
    potential = laws.get(law).potential_energy(distance, m1, m2) / reduced_mass(m1, m2)
    return np.sum(velocity**2, axis=-1) / 2 + potential
