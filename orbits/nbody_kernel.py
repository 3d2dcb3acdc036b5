"""Symplectic N-body integrator, compiled with numba.

Wisdom & Holman (1991): in Jacobi coordinates the Hamiltonian is a sum of Kepler motions, which
are solved exactly, and a perturbation a thousand times smaller that depends on positions alone.
The two alternate by the splitting ABA864 of Blanes et al. (2013), whose error in a step h is
O(eps h^8 + eps^2 h^6 + eps^3 h^4) for planets of relative mass eps. Strict IEEE arithmetic.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")

# Blanes et al. (2013), Applied Numerical Mathematics 68, 58: ABA864, half of a palindrome.
DRIFTS = np.array([0.07113342649822312, 0.2411534279566401, 0.5214117617728148, -0.333698616227678])
KICKS = np.array(
    [0.18308368747219722, 0.31078285989857485, -0.0265646185119588, 0.06539614228237342]
)


@_compiled
def integrate(
    gravity: float,
    mass: Array,
    position: Array,
    velocity: Array,
    times: Array,
    longest_step: float,
    positions: Array,
    velocities: Array,
) -> bool:
    """Integrate one system forwards from time 0.

    Args:
        gravity: The gravitational constant.
        mass: Masses of B bodies, the star first, planets by distance, [B].
        position: Astrocentric positions, [B, 2]; overwritten.
        velocity: Astrocentric velocities, [B, 2]; overwritten.
        times: Times that do not decrease, none below 0, [T]. Between two of them all steps
            are equal.
        longest_step: Upper bound of a step.
        positions: Receives the barycentric positions, [T, B, 2].
        velocities: Receives the barycentric velocities, [T, B, 2].

    Returns:
        False if a planet left its elliptic orbit; the rest of the output is then not written.
    """
    inner = np.cumsum(mass)  # mass inside and including body k
    acceleration = np.empty_like(position)
    _to_jacobi(mass, inner, position)
    _to_jacobi(mass, inner, velocity)
    now = 0.0
    for t in range(len(times)):
        n_steps = math.ceil((times[t] - now) / longest_step)
        step = (times[t] - now) / max(n_steps, 1)
        for k in range(n_steps):
            # The last drift of a step and the first of the next are one.
            first = DRIFTS[0] * step if k == 0 else 2 * DRIFTS[0] * step
            if not _drift(gravity, inner, position, velocity, first):
                return False
            for stage in range(7):
                kick, drift = min(stage, 6 - stage), min(stage + 1, 6 - stage)
                _accelerate(gravity, mass, inner, position, positions[t], acceleration)
                velocity += KICKS[kick] * step * acceleration
                if stage < 6 and not _drift(
                    gravity, inner, position, velocity, DRIFTS[drift] * step
                ):
                    return False
        if n_steps and not _drift(gravity, inner, position, velocity, DRIFTS[0] * step):
            return False
        now = times[t]
        _from_jacobi(mass, inner, position, positions[t])
        _from_jacobi(mass, inner, velocity, velocities[t])
    return True


@_compiled
def _to_jacobi(mass: Array, inner: Array, values: Array) -> None:
    """Make body k's vector relative to the centre of mass of the bodies inside it, in place."""
    for axis in range(2):
        centre = values[0, axis]
        for k in range(1, len(mass)):
            value = values[k, axis]
            values[k, axis] = value - centre
            centre += mass[k] / inner[k] * values[k, axis]


@_compiled
def _from_jacobi(mass: Array, inner: Array, jacobi: Array, values: Array) -> None:
    """Write the barycentric vectors into ``values``."""
    for axis in range(2):
        centre = 0.0
        for k in range(len(mass) - 1, 0, -1):
            centre -= mass[k] / inner[k] * jacobi[k, axis]
            values[k, axis] = centre + jacobi[k, axis]
        values[0, axis] = centre


@_compiled
def _accelerate(
    gravity: float, mass: Array, inner: Array, jacobi: Array, place: Array, out: Array
) -> None:
    """Write the Jacobi accelerations without those of the Kepler motions; ``place`` is scratch."""
    _from_jacobi(mass, inner, jacobi, place)
    out[:] = 0
    for i in range(len(mass)):
        for j in range(i):
            x, y = place[i, 0] - place[j, 0], place[i, 1] - place[j, 1]
            square = x * x + y * y
            pull = gravity / (square * math.sqrt(square))
            out[i, 0] -= mass[j] * pull * x
            out[i, 1] -= mass[j] * pull * y
            out[j, 0] += mass[i] * pull * x
            out[j, 1] += mass[i] * pull * y
    _to_jacobi(mass, inner, out)
    for k in range(1, len(mass)):
        x, y = jacobi[k, 0], jacobi[k, 1]
        square = x * x + y * y
        pull = gravity * inner[k] / (square * math.sqrt(square))
        out[k, 0] += pull * x
        out[k, 1] += pull * y


@_compiled
def _drift(gravity: float, inner: Array, position: Array, velocity: Array, time: float) -> bool:
    """Move every planet along its ellipse by Gauss's f and g functions, in place."""
    for k in range(1, len(inner)):
        mu = gravity * inner[k]
        x, y, vx, vy = position[k, 0], position[k, 1], velocity[k, 0], velocity[k, 1]
        r = math.sqrt(x * x + y * y)
        inverse_a = 2 / r - (vx * vx + vy * vy) / mu
        if not inverse_a > 0:
            return False
        motion = inverse_a * math.sqrt(mu * inverse_a)
        e_cosine = 1 - r * inverse_a
        e_sine = (x * vx + y * vy) * math.sqrt(inverse_a / mu)
        advance, sine, versine = _anomaly_difference(e_cosine, e_sine, motion * time)
        new = (1 - e_cosine * (1 - versine) + e_sine * sine) / inverse_a
        f, g = 1 - versine / (r * inverse_a), time - (advance - sine) / motion
        f_rate = -math.sqrt(mu / inverse_a) * sine / (r * new)
        g_rate = 1 - versine / (new * inverse_a)
        position[k, 0], position[k, 1] = f * x + g * vx, f * y + g * vy
        velocity[k, 0], velocity[k, 1] = f_rate * x + g_rate * vx, f_rate * y + g_rate * vy
    return True


@_compiled
def _anomaly_difference(e_cosine: float, e_sine: float, mean: float) -> tuple[float, float, float]:
    """Solve D - e_cosine sin D + e_sine (1 - cos D) = mean; return D, sin D and 1 - cos D."""
    # The left side is D + e (sin E0 - sin(E0 + D)): at most 2 e away from D.
    e = math.sqrt(e_cosine * e_cosine + e_sine * e_sine)
    low, high = mean - 2 * e, mean + 2 * e
    d = mean / (1 - e_cosine)  # the slope at 0, right for the short steps taken here
    if not low < d < high:
        d = mean
    for _ in range(60):
        half = math.sin(0.5 * d)
        sine, versine = 2 * half * math.cos(0.5 * d), 2 * half * half
        excess = d - e_cosine * sine + e_sine * versine - mean
        if excess > 0:
            high = d
        else:
            low = d
        step = excess / (1 - e_cosine * (1 - versine) + e_sine * sine)
        d -= step
        if abs(step) < 1e-8:  # Newton's step doubles the digits
            break
        if not low <= d <= high:
            d = 0.5 * (low + high)
    half = math.sin(0.5 * d)
    return d, 2 * half * math.cos(0.5 * d), 2 * half * half
