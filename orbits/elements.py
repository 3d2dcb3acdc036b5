"""Elements of two-body orbits and the checks of the arguments of all motions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Elements(NamedTuple):
    """N bound orbits of a planet about its star, as they are at time 0.

    Attributes:
        semi_major_axis: a in AU, [N]: half the sum of the turning points a(1 -+ e).
        eccentricity: e, 0 <= e < 1, [N].
        periapsis: Angle of the periapsis that the mean anomaly is counted from, radians, [N].
        mean_anomaly: 2 pi times the fraction of a radial period since the periapsis, [N].
        m1: Planet masses in solar masses, [N].
        m2: Star masses in solar masses, [N].
    """

    semi_major_axis: npt.ArrayLike
    eccentricity: npt.ArrayLike
    periapsis: npt.ArrayLike
    mean_anomaly: npt.ArrayLike
    m1: npt.ArrayLike
    m2: npt.ArrayLike


def positive(name: str, values: npt.ArrayLike) -> Array:
    """Return values as an array; refuse one that is not positive and finite."""
    array = np.asarray(values, np.float64)
    return _checked(name, array, (array > 0) & (array < np.inf), "positive and finite")


def bound(eccentricity: npt.ArrayLike) -> Array:
    """Return eccentricities as an array; refuse one of an orbit that is not bound."""
    array = np.asarray(eccentricity, np.float64)
    return _checked("eccentricity", array, (array >= 0) & (array < 1), "in [0, 1)")


def finite(name: str, values: npt.ArrayLike) -> Array:
    """Return values as an array; refuse one that is not finite."""
    array = np.asarray(values, np.float64)
    return _checked(name, array, np.isfinite(array), "finite")


def output_times(times: npt.ArrayLike, n: int) -> Array:
    """Return times [n, T] in years as an array; refuse another shape."""
    array = finite("times", times)
    if array.ndim != 2 or len(array) != n:
        raise ValueError(f"times must have shape [{n}, T], got {list(array.shape)}")
    return array


def ascending_times(times: npt.ArrayLike, n: int) -> Array:
    """Return times [n, T] of a motion that is integrated forwards from time 0."""
    array = np.ascontiguousarray(output_times(times, n))
    if not np.all(np.diff(array, axis=1, prepend=0) >= 0):
        raise ValueError("times must start at 0 or later and not decrease")
    return array


def _checked(name: str, array: Array, allowed: npt.NDArray[np.bool_], what: str) -> Array:
    if not np.all(allowed):
        raise ValueError(f"{name} must be {what}, got {array[~allowed].flat[0]}")
    return array
