"""Closed-form motion of two bodies under Newton's gravity, vectorised over trajectories.

Two functions are the boundary behind which a compiled kernel may take over: everything else in
the package calls :func:`eccentric_anomaly` and :func:`relative_orbit` only. Both are
element-wise, so a trajectory's bytes do not depend on the batch it is computed in.

Units: AU, years, solar masses; G m is in AU^3 / year^2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits.laws.newton import GRAVITATIONAL_CONSTANT

Array = npt.NDArray[np.float64]


def eccentric_anomaly(mean_anomaly: npt.ArrayLike, eccentricity: npt.ArrayLike) -> Array:
    """Solve Kepler's equation M = E - e sin E.

    Markley's (1995) non-iterative starter followed by one fifth-order correction. The number of
    operations is fixed, so the result of an element never depends on its neighbours.

    Args:
        mean_anomaly: M in radians, any real value.
        eccentricity: e, broadcast against M, 0 <= e < 1.

    Returns:
        E in radians, in the same revolution as M.

    Raises:
        ValueError: An eccentricity is outside [0, 1) or an anomaly is not finite.
    """
    mean, ecc = np.broadcast_arrays(
        np.asarray(mean_anomaly, np.float64), np.asarray(eccentricity, np.float64)
    )
    if not np.all((ecc >= 0) & (ecc < 1)):
        worst = ecc[~((ecc >= 0) & (ecc < 1))].flat[0]
        raise ValueError(f"eccentricity must be in [0, 1) for a bound orbit, got {worst}")
    if not np.all(np.isfinite(mean)):
        raise ValueError("mean_anomaly must be finite")
    turns = np.round(mean / (2 * np.pi))
    wrapped = mean - 2 * np.pi * turns
    m = np.abs(wrapped)

    # Markley (1995), Celestial Mechanics 63, 101: equations 20, 5, 9, 10, 14 and 15.
    alpha = (3 * np.pi**2 + 1.6 * np.pi * (np.pi - m) / (1 + ecc)) / (np.pi**2 - 6)
    d = 3 * (1 - ecc) + alpha * ecc
    r = 3 * alpha * d * (d - 1 + ecc) * m + m**3
    q = 2 * alpha * d * (1 - ecc) - m**2
    w = np.cbrt(np.abs(r) + np.sqrt(q**3 + r**2)) ** 2
    start = (2 * r * w / (w**2 + w * q + q**2) + m) / d

    sine, cosine = ecc * np.sin(start), ecc * np.cos(start)
    f0, f1 = start - sine - m, 1 - cosine
    d3 = -f0 / (f1 - 0.5 * f0 * sine / f1)
    d4 = -f0 / (f1 + 0.5 * d3 * sine + d3**2 * cosine / 6)
    d5 = -f0 / (f1 + 0.5 * d4 * sine + d4**2 * cosine / 6 - d4**3 * sine / 24)
    return np.asarray(np.copysign(start + d5, wrapped) + 2 * np.pi * turns)


def period(semi_major_axis: npt.ArrayLike, total_mass: npt.ArrayLike) -> Array:
    """Return the orbital period in years by Kepler's third law, P^2 = 4 pi^2 a^3 / (G m)."""
    a, mass = np.asarray(semi_major_axis, np.float64), np.asarray(total_mass, np.float64)
    return np.asarray(2 * np.pi * np.sqrt(a**3 / (GRAVITATIONAL_CONSTANT * mass)))


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
        ValueError: An orbit is not bound (e outside [0, 1)).
    """
    a, ecc, omega, phase, mass = (
        np.asarray(x, np.float64)[..., None]
        for x in (semi_major_axis, eccentricity, periapsis, mean_anomaly, total_mass)
    )
    mean_motion = np.sqrt(GRAVITATIONAL_CONSTANT * mass / a**3)
    anomaly = eccentric_anomaly(phase + mean_motion * np.asarray(times, np.float64), ecc)
    cosine, sine = np.cos(anomaly), np.sin(anomaly)
    minor = np.sqrt((1 - ecc) * (1 + ecc))
    rate = mean_motion / (1 - ecc * cosine)
    position = _rotated(a * (cosine - ecc), a * minor * sine, omega)
    velocity = _rotated(-a * sine * rate, a * minor * cosine * rate, omega)
    return position, velocity


def _rotated(x: Array, y: Array, angle: Array) -> Array:
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)
