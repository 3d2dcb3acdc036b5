"""Motion of two bodies under a named law.

Newton's law moves by its closed form (``orbits.kepler``: pure arithmetic, the same bytes on every
machine), all others by ``orbits.central``. No other module makes this choice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits import central, kepler, laws
from orbits.arithmetic import Array
from orbits.elements import Elements
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

NEWTON = "newton"


def relative_orbit(
    law: str, orbits: Elements, times: npt.ArrayLike, refuse: bool = True
) -> tuple[Array, Array]:
    """Return position [N, T, 2] (AU) and velocity (AU / year) of the planet relative to its star.

    Args:
        law: Name of the law.
        orbits: N orbits.
        times: Times in years, [N, T].
        refuse: Whether an orbit that is not bound is an error; else it is all NaN.

    Raises:
        ValueError: There is no such law, or an orbit is not bound.
    """
    if law == NEWTON:
        return kepler.relative_orbit(*orbits[:4], np.add(orbits.m1, orbits.m2), times)
    return central.relative_orbit(laws.get(law), orbits, times, refuse)


def period(law: str, semi_major_axis: Array, eccentricity: Array, m1: Array, m2: Array) -> Array:
    """Return the time from periapsis to periapsis in years, [N].

    Raises:
        ValueError: There is no such law, or an orbit is not bound.
    """
    if law == NEWTON:
        return kepler.period(semi_major_axis, m1 + m2)
    return central.radial_period(laws.get(law), semi_major_axis, eccentricity, m1, m2)


def angular_period(
    law: str, semi_major_axis: Array, eccentricity: Array, m1: Array, m2: Array
) -> Array:
    """Return the mean time of a turn of the angle, years, [N]; Newton's is that of the distance.

    Raises:
        ValueError: There is no such law, or an orbit is not bound.
    """
    if law == NEWTON:
        return kepler.period(semi_major_axis, m1 + m2)
    return central.angular_period(laws.get(law), semi_major_axis, eccentricity, m1, m2)


def attraction(law: str, relative: Array, m1: Array, m2: Array) -> Array:
    """Return the force on the planet, towards the star, solar mass AU / year^2.

    Args:
        law: Name of the law.
        relative: Planet - star in AU, [..., 2].
        m1: Planet mass in solar masses, broadcast against [...].
        m2: Star mass in solar masses, broadcast against [...].

    Returns:
        Shape [..., 2].
    """
    square = relative[..., 0] * relative[..., 0] + relative[..., 1] * relative[..., 1]
    distance = np.sqrt(square)
    if law == NEWTON:
        magnitude = GRAVITATIONAL_CONSTANT * (m1 * m2) / square
    else:
        magnitude = laws.get(law).magnitude(distance, m1, m2)
    return -(magnitude / distance)[..., None] * relative
