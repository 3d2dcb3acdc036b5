"""Evaluation of the series of :mod:`orbits.central`: a compiled kernel and its plain twin.

Both solve M(u) = u + sum_k b_k sin(k u) for the anomaly u and return positions and velocities.
:func:`evaluate_plain` is the specification: bisection, no cleverness. Strict IEEE arithmetic; a
point never depends on its neighbours.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CONVERGED = 1e-8  # radians; Newton's step doubles the digits, so the next one is below rounding
MAX_STEPS = 80  # bisection alone would need 52


def evaluate_plain(
    times: Array,
    phase: Array,
    periapsis: Array,
    mean_motion: Array,
    advance: Array,
    scale: Array,
    width: Array,
    momentum: Array,
    time: Array,
    angle: Array,
) -> tuple[Array, Array]:
    """Return positions and velocities at some times by bisection and plain sums.

    Args:
        times: Years, [n, T].
        phase: Mean anomaly at time 0, radians, [n].
        periapsis: Angle of the periapsis, radians, [n].
        mean_motion: This and the rest are the fields of :class:`orbits.central.Series`.
        advance: Turns of the angle per radial turn, [n].
        scale: Distance at u = pi / 2, AU, [n].
        width: Half the range of ln r, [n].
        momentum: Angular momentum over reduced mass, AU^2 / year, [n].
        time: Sine coefficients of the mean anomaly, [n, K].
        angle: Sine coefficients of the angle, radians, [n, K].

    Returns:
        Positions in AU and velocities in AU / year, each [n, T, 2].
    """
    phase, periapsis, mean_motion, advance, scale, width, momentum = (
        x[:, None] for x in (phase, periapsis, mean_motion, advance, scale, width, momentum)
    )
    k = np.arange(1, time.shape[1] + 1)

    def sines(u: Array, terms: Array) -> Array:
        return np.einsum("ntk,nk->nt", np.sin(k * u[..., None]), terms)

    mean = phase + mean_motion * times
    turns = np.rint(mean / (2 * np.pi))
    mean = mean - 2 * np.pi * turns
    low, high = np.full(mean.shape, -np.pi), np.full(mean.shape, np.pi)
    for _ in range(60):
        u = (low + high) / 2
        below = u + sines(u, time) < mean
        low, high = np.where(below, u, low), np.where(below, high, u)
    slope = 1 + np.einsum("ntk,nk->nt", np.cos(k * u[..., None]), k * time)
    theta = periapsis + advance * (u + 2 * np.pi * turns) + sines(u, angle)
    r = scale * np.exp(-width * np.cos(u))
    outwards = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    sideways = np.stack([-np.sin(theta), np.cos(theta)], axis=-1)
    radial = r * width * np.sin(u) * mean_motion / slope
    velocity = radial[..., None] * outwards + (momentum / r)[..., None] * sideways
    return r[..., None] * outwards, velocity


@numba.njit(cache=True, nogil=True, error_model="numpy")
def evaluate(
    times: Array,
    phase: Array,
    periapsis: Array,
    mean_motion: Array,
    advance: Array,
    scale: Array,
    width: Array,
    momentum: Array,
    time: Array,
    angle: Array,
) -> tuple[Array, Array]:
    """Return the same as :func:`evaluate_plain`, by some four Newton steps per point."""
    n, n_times = times.shape
    position, velocity = np.empty((n, n_times, 2)), np.empty((n, n_times, 2))
    for i in range(n):
        for j in range(n_times):
            mean = phase[i] + mean_motion[i] * times[i, j]
            turns = np.rint(mean / (2 * math.pi))
            mean -= 2 * math.pi * turns
            u = math.copysign(_anomaly(abs(mean), time[i]), mean)
            cosine, sine = math.cos(u), math.sin(u)
            _, slope = _sums(time[i], cosine, sine)
            bend, _ = _sums(angle[i], cosine, sine)
            theta = periapsis[i] + advance[i] * (u + 2 * math.pi * turns) + bend
            r = scale[i] * math.exp(-width[i] * cosine)
            radial = r * width[i] * sine * mean_motion[i] / (1 + slope)
            along = momentum[i] / r
            x, y = math.cos(theta), math.sin(theta)
            position[i, j, 0], position[i, j, 1] = r * x, r * y
            velocity[i, j, 0] = radial * x - along * y
            velocity[i, j, 1] = radial * y + along * x
    return position, velocity


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _anomaly(mean: float, time: Array) -> float:
    """Solve M(u) = mean in [0, pi] by Newton's method, with bisection where it would leave."""
    low, high = 0.0, math.pi
    # The classical first guess for Kepler's equation (Smith 1979), with -b_1 as eccentricity.
    e = min(max(-time[0], 0.0), 0.9)
    u = mean + e * math.sin(mean) / (1 - math.sin(mean + e) + math.sin(mean))
    for _ in range(MAX_STEPS):
        sine_sum, slope = _sums(time, math.cos(u), math.sin(u))
        excess = u + sine_sum - mean
        if excess > 0:
            high = u
        else:
            low = u
        step = excess / (1 + slope)
        if abs(step) < CONVERGED:
            return u - step
        u -= step
        if not low < u < high:
            u = 0.5 * (low + high)
    return u


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sums(terms: Array, cosine: float, sine: float) -> tuple[float, float]:
    """Return sum_k b_k sin(k u) and sum_k k b_k cos(k u) by Clenshaw's recurrence."""
    twice = 2 * cosine
    s1 = s2 = c1 = c2 = 0.0
    for k in range(len(terms), 0, -1):
        s1, s2 = terms[k - 1] + twice * s1 - s2, s1
        c1, c2 = k * terms[k - 1] + twice * c1 - c2, c1
    return sine * s1, cosine * c1 - c2
