"""Closed-form motion of two bodies under Newton's gravity, vectorised over trajectories.

Everything is arithmetic (``orbits.arithmetic``) and element-wise: a trajectory's bytes depend
neither on the machine nor on the batch. ``orbits.kernel`` compiles the shared functions below.

Units: AU, years, solar masses; G m is in AU^3 / year^2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits.arithmetic import (
    PER_TURN,
    PI,
    TURN,
    cbrt_estimate,
    cos_sin,
    select,
    shared,
    sin_cos_quadrant,
)
from orbits.elements import Array, bound, positive
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

_MARKLEY_0 = 3.0 * PI * PI / (PI * PI - 6.0)
_MARKLEY_1 = 1.6 * PI / (PI * PI - 6.0)


@shared
def solve(m, e):
    """Solve Kepler's equation m = E - e sin E for 0 <= m <= pi and 0 <= e < 1.

    Markley (1995), Celestial Mechanics 63, 101: a starter within 5e-4, then one fifth-order
    correction. The number of operations is fixed, and fractions of fractions are written as one:
    divisions are what the loop spends its time on.

    Returns:
        E in radians, cos E and sin E.
    """
    # Equations 20, 5, 9, 10, 14 and 15. With m >= 0, r is not negative.
    gap = 1.0 - e
    alpha = _MARKLEY_0 + _MARKLEY_1 / (1.0 + e) * (PI - m)
    d = 3.0 * gap + alpha * e
    r = (3.0 * alpha * d * (d - gap) + m * m) * m
    q = 2.0 * alpha * d * gap - m * m
    w = cbrt_estimate(r + np.sqrt(q * q * q + r * r))
    w = w * w
    denominator = w * w + w * q + q * q
    start = (2.0 * r * w + m * denominator) / (d * denominator)

    sine_half, cosine_half = sin_cos_quadrant(0.5 * start)
    sine, versine = 2.0 * sine_half * cosine_half, 2.0 * sine_half * sine_half
    # Equations 21 to 25: f and its derivatives, f1 = 1 - e cos E free of cancellation.
    f0 = (start - e * sine) - m
    f1 = gap + e * versine
    half_f2 = 0.5 * (e * sine)
    sixth_f3 = (e - e * versine) * (1.0 / 6.0)
    d3 = -f0 * f1 / (f1 * f1 - f0 * half_f2)
    d4 = -f0 / (f1 + d3 * (half_f2 + d3 * sixth_f3))
    d5 = -f0 / (f1 + d4 * (half_f2 + d4 * (sixth_f3 - d4 * (half_f2 * (1.0 / 12.0)))))

    # |d5| < 5e-4: sine and cosine turn by two terms of their series.
    square = d5 * d5
    sine_d5 = d5 - d5 * square * (1.0 / 6.0)
    cosine_d5 = -0.5 * square * (1.0 - square * (1.0 / 12.0))  # minus 1
    cosine = 1.0 - versine
    return (
        start + d5,
        cosine + (cosine * cosine_d5 - sine * sine_d5),
        sine + (sine * cosine_d5 + cosine * sine_d5),
    )


@shared
def anomaly_cos_sin(turns, e):
    """Return cos E and sin E at a mean anomaly counted in turns, any real number of them."""
    # Whole turns are dropped before anything is multiplied by 2 pi, so long times cost nothing.
    signed = turns - np.floor(turns + 0.5)
    _, cosine, sine = solve(TURN * np.abs(signed), e)
    return cosine, select(signed < 0.0, -sine, sine)


@shared
def frequency(semi_major_axis, total_mass):
    """Return the revolutions per year by Kepler's third law, n^2 a^3 = G m."""
    cube = semi_major_axis * semi_major_axis * semi_major_axis
    return np.sqrt(GRAVITATIONAL_CONSTANT * total_mass / cube) * PER_TURN


@shared
def rotated(x, y, cosine, sine):
    """Return (x, y) turned by the angle of this cosine and sine."""
    return cosine * x - sine * y, sine * x + cosine * y


def period(semi_major_axis: npt.ArrayLike, total_mass: npt.ArrayLike) -> Array:
    """Return the orbital period in years by Kepler's third law, P^2 = 4 pi^2 a^3 / (G m).

    Raises:
        ValueError: A semi-major axis or a mass is not positive.
    """
    return np.asarray(1.0 / _frequency(semi_major_axis, total_mass))


def relative_orbit(
    semi_major_axis: npt.ArrayLike,
    eccentricity: npt.ArrayLike,
    periapsis: npt.ArrayLike,
    mean_anomaly: npt.ArrayLike,
    total_mass: npt.ArrayLike,
    times: npt.ArrayLike,
) -> tuple[Array, Array]:
    """Return the planet's motion relative to its star.

    Args:
        semi_major_axis: a in AU, shape [N].
        eccentricity: e, shape [N], 0 <= e < 1.
        periapsis: Angle of the periapsis in radians, shape [N].
        mean_anomaly: Mean anomaly at time 0 in radians, shape [N].
        total_mass: m1 + m2 in solar masses, shape [N].
        times: Times in years, shape [N, T].

    Returns:
        Position in AU and velocity in AU / year, each of shape [N, T, 2]. Motion is prograde.

    Raises:
        ValueError: An orbit is not bound (e outside [0, 1)), or a semi-major axis or a mass is
            not positive.
    """
    a, e, omega, phase, mass = (
        np.asarray(x, np.float64)[..., None]
        for x in (semi_major_axis, eccentricity, periapsis, mean_anomaly, total_mass)
    )
    per_year = _frequency(a, mass)
    turns = phase * PER_TURN + np.asarray(times, np.float64) * per_year
    cosine, sine = anomaly_cos_sin(turns, bound(e))
    minor = a * np.sqrt((1.0 - e) * (1.0 + e))
    rate = TURN * per_year / (1.0 - e * cosine)
    towards = cos_sin(omega)
    position = rotated(a * (cosine - e), minor * sine, *towards)
    velocity = rotated(-a * sine * rate, minor * cosine * rate, *towards)
    return np.stack(position, axis=-1), np.stack(velocity, axis=-1)


def _frequency(semi_major_axis: npt.ArrayLike, total_mass: npt.ArrayLike) -> Array:
    return frequency(
        positive("semi_major_axis", semi_major_axis), positive("total_mass", total_mass)
    )
