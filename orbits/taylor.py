"""Motion of a few bodies by Taylor series: drag, a changing G, pulls of unlike strength.

The acceleration of body i at place x_i is

    G (1 + g_rate t) sum over j of coupling_ij m_j (x_j - x_i) / |x_j - x_i|^3 - drag_rate v_i:

Newton's law, Stokes drag in a medium at rest, a gravitational constant that changes evenly, and
a factor for each pair. There is no closed form. The equations are integrated by series of order
24, whose coefficients obey recurrences (Jorba & Zou 2005, Experimental Mathematics 14, 99). The
step follows the radius of convergence, so that a passage through the periapsis is resolved by
itself, and a step's series gives the points inside it. Strict IEEE arithmetic; a system never
depends on its batch.

Of two bodies without any of this the error against Kepler's closed form is below 2e-10 AU after
50 years at e = 0.95. Importing this module imports numba. Units: AU, years, solar masses.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from orbits.elements import Array, ascending_times
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

ORDER = 24
CLOSE = 2.0**-10
"""Distance in AU below which two bodies are followed from their own centre, and in units of time as
short as their passage: else rounding of places of 1 AU would change the energy of a passage at 1e-6
AU, and the coefficients of one at 1e-8 AU would be too large for a float. Not with drag, which is
not the same seen from a moving centre."""
LARGEST_DECAY = 2.0
"""Largest drag_rate times time: by then a circular orbit has shrunk by e^4."""

_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


def trajectories(
    mass: Array,
    place: Array,
    velocity: Array,
    times: npt.ArrayLike,
    coupling: Array | None = None,
    drag_rate: float = 0.0,
    g_rate: float = 0.0,
) -> tuple[Array, Array]:
    """Return the motion of N systems of B bodies.

    Args:
        mass: Solar masses, [N, B].
        place: At time 0, AU, [N, B, 2].
        velocity: At time 0, AU / year, [N, B, 2].
        times: Times in years, [N, T]; none negative, none before its predecessor.
        coupling: Factor of the attraction of each pair, symmetric, [N, B, B]; None for 1.
        drag_rate: Per year, 0 or more.
        g_rate: Change of G per year, as a share of G at time 0.

    Returns:
        Places in AU and velocities in AU / year, each [N, T, B, 2].

    Raises:
        ValueError: The times are out of order; drag is negative or too strong for the last time;
            or G is not positive by then.
    """
    n, bodies = mass.shape
    times = ascending_times(times, n)
    last = float(times.max(initial=0))
    if not 0 <= drag_rate * last <= LARGEST_DECAY:
        raise ValueError(
            f"drag_rate must be between 0 and {LARGEST_DECAY:g} over the last time {last:g}, got "
            f"{drag_rate:g}"
        )
    if not 1 + g_rate * last > 0:
        raise ValueError(
            f"g_rate must leave G positive until the last time {last:g}, got {g_rate:g}"
        )
    if coupling is None:
        coupling = np.ones((n, bodies, bodies))
    mass, place, velocity, coupling = (
        np.ascontiguousarray(x, np.float64) for x in (mass, place, velocity, coupling)
    )
    pairs = (n, bodies, bodies)
    if coupling.shape != pairs or not np.array_equal(coupling, coupling.transpose(0, 2, 1)):
        raise ValueError(f"coupling must be symmetric, {list(pairs)}, got {list(coupling.shape)}")
    for name, given in (("place", place), ("velocity", velocity)):
        if given.shape != (n, bodies, 2):
            raise ValueError(f"{name} must be {[n, bodies, 2]}, got {list(given.shape)}")
    return _integrate(
        mass, place, velocity, coupling, times, GRAVITATIONAL_CONSTANT, drag_rate, g_rate
    )


@_compiled
def _integrate(
    mass: Array,
    start: Array,
    speed: Array,
    coupling: Array,
    times: Array,
    gravity: float,
    drag_rate: float,
    g_rate: float,
) -> tuple[Array, Array]:
    n, n_times = times.shape
    bodies = mass.shape[1]
    places, velocities = np.empty((2, n, n_times, bodies, 2))
    # Row k of each holds the Taylor coefficients of order k.
    place, motion, pull = np.empty((3, ORDER + 1, bodies, 2))
    pairs = bodies * (bodies - 1) // 2
    apart = np.empty((pairs, ORDER + 1, 2))
    squares, cubes = np.empty((2, pairs, ORDER + 1))
    origin, drift = np.empty((2, 2))  # of the close bodies' centre, while it is local
    for i in range(n):
        place[0], motion[0] = start[i], speed[i]
        now, since, j = 0.0, 0.0, 0
        is_local = False
        while j < n_times:
            one, other, closest = _closest(place[0])
            if is_local != (closest < CLOSE and drag_rate == 0):
                is_local = not is_local
                if is_local:
                    since = now
                    _enter(place[0], origin, one, other, mass[i])
                    _enter(motion[0], drift, one, other, mass[i])
                else:
                    place[0] += origin + drift * (now - since)
                    motion[0] += drift
            unit = math.ldexp(1.0, 3 * math.frexp(closest)[1] // 2) if is_local else 1.0  # r^1.5
            constant, change = gravity * (1 + g_rate * now), gravity * g_rate
            motion[0] *= unit
            _expand(
                place, motion, pull, apart, squares, cubes, mass[i], coupling[i],
                constant * unit * unit, change * unit * unit * unit, drag_rate * unit,
            )  # fmt: skip
            step = _step(apart)
            # Written so that a nan, should one arise, ends in the output and not in a loop.
            while j < n_times and not times[i, j] > now + step * unit:
                _evaluate(place, (times[i, j] - now) / unit, places[i, j])
                _evaluate(motion, (times[i, j] - now) / unit, velocities[i, j])
                velocities[i, j] /= unit
                if is_local:
                    places[i, j] += origin + drift * (times[i, j] - since)
                    velocities[i, j] += drift
                j += 1
            _evaluate(place, step, place[0])
            _evaluate(motion, step, motion[0])
            motion[0] /= unit
            now += step * unit
    return places, velocities


@_compiled
def _closest(place: Array) -> tuple[int, int, float]:
    """Return the two bodies that are closest, and their distance."""
    one, other, closest = 0, 0, np.inf
    for i in range(len(place)):
        for j in range(i):
            apart = math.hypot(place[i, 0] - place[j, 0], place[i, 1] - place[j, 1])
            if apart < closest:
                one, other, closest = i, j, apart
    return one, other, closest


@_compiled
def _enter(values: Array, origin: Array, one: int, other: int, mass: Array) -> None:
    """Count places, or velocities, from the centre of mass of two bodies, which is kept."""
    share = mass[one] / (mass[one] + mass[other])
    for axis in range(2):
        apart = values[one, axis] - values[other, axis]  # exact, of bodies so close
        origin[axis] = values[other, axis] + share * apart
        for body in range(len(values)):
            values[body, axis] -= origin[axis]
        values[one, axis], values[other, axis] = (1 - share) * apart, -share * apart


@_compiled
def _expand(
    place: Array,
    motion: Array,
    pull: Array,
    apart: Array,
    squares: Array,
    cubes: Array,
    mass: Array,
    coupling: Array,
    constant: float,
    change: float,
    drag_rate: float,
) -> None:
    """Fill in the coefficients from order 0.

    Of each pair ``apart`` holds the distance vector, ``squares`` r^2 and ``cubes`` r^-3; ``pull``
    holds the accelerations without G, which is ``constant + change t``. All are per unit of time.
    """
    bodies = len(mass)
    for k in range(ORDER + 1):
        pair = 0
        pull[k] = 0
        for i in range(bodies):
            for j in range(i):
                d, square, cube = apart[pair], squares[pair], cubes[pair]
                d[k] = place[k, i] - place[k, j]
                total = 0.0
                for m in range(k + 1):
                    total += d[m, 0] * d[k - m, 0] + d[m, 1] * d[k - m, 1]
                square[k] = total
                # From r^2 c' = -3/2 (r^2)' c, the derivative of c = (r^2)^(-3/2).
                total = 0.0
                for m in range(k):
                    total -= (1.5 * (k - m) + m) * square[k - m] * cube[m]
                cube[k] = total / (k * square[0]) if k else 1 / (square[0] * math.sqrt(square[0]))
                for axis in range(2):
                    total = 0.0
                    for m in range(k + 1):
                        total += d[m, axis] * cube[k - m]
                    pull[k, i, axis] -= coupling[i, j] * mass[j] * total
                    pull[k, j, axis] += coupling[i, j] * mass[i] * total
                pair += 1
        if k == ORDER:
            break
        for i in range(bodies):
            for axis in range(2):
                force = constant * pull[k, i, axis]
                if k:
                    force += change * pull[k - 1, i, axis]
                place[k + 1, i, axis] = motion[k, i, axis] / (k + 1)
                motion[k + 1, i, axis] = (force - drag_rate * motion[k, i, axis]) / (k + 1)


@_compiled
def _step(apart: Array) -> float:
    """Return the radius of convergence over e^1.7: the last term is then 2e-18 of the first."""
    radius = np.inf
    for d in apart:
        size = math.hypot(d[0, 0], d[0, 1])
        for k in (ORDER - 1, ORDER):
            last = math.hypot(d[k, 0], d[k, 1])
            radius = min(radius, (size / last) ** (1 / k))
    return radius * math.exp(-1.7)


@_compiled
def _evaluate(coefficients: Array, time: float, out: Array) -> None:
    for i in range(out.shape[0]):
        x = y = 0.0
        for k in range(ORDER, -1, -1):
            x = x * time + coefficients[k, i, 0]
            y = y * time + coefficients[k, i, 1]
        out[i, 0], out[i, 1] = x, y
