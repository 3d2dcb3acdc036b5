"""Osculating elements: the orbit through a place with a velocity, under any central law.

The inverse of :func:`orbits.motion.relative_orbit`. Energy and angular momentum give the turning
points, these the axis and the eccentricity, and the place between them the phase.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from orbits import central
from orbits.arithmetic import Array
from orbits.elements import Elements
from orbits.laws import Law, reduced_mass

REACH, STRIDES = 1e3, 60
"""Factor by which turning points may be nearer or farther than the place, and steps of the search
for the first distance that is beyond them."""
HALVINGS = 60
LARGEST = 0.95
"""Eccentricity above which an orbit counts as not bound; series of others are short."""


def osculating(law: Law, position: Array, velocity: Array, m1: Array, m2: Array) -> Elements:
    """Return the elements of the orbits that have a place and a velocity at time 0.

    Args:
        law: The force law, which needs a potential in closed form.
        position: Planet - star in AU, [N, 2].
        velocity: Its change in AU / year, [N, 2]; prograde.
        m1: Planet masses in solar masses, [N].
        m2: Star masses in solar masses, [N].

    Returns:
        Arrays [N] with NaN in axis, eccentricity and angles where no such orbit is bound, or its
        eccentricity is above :data:`LARGEST`.

    Raises:
        ValueError: The law has no potential in closed form.
    """
    r = np.linalg.norm(position, axis=-1)
    outward = np.einsum("nc,nc->n", position, velocity) / r
    momentum = position[:, 0] * velocity[:, 1] - position[:, 1] * velocity[:, 0]
    reduced = reduced_mass(m1, m2)
    energy = np.sum(velocity**2, axis=-1) / 2 + law.potential_energy(r, m1, m2) / reduced

    def is_beyond(distance: Array) -> Array:
        """Tell whether the squared radial velocity would be negative."""
        potential = law.potential_energy(distance, m1, m2) / reduced
        return 2 * (energy - potential) < (momentum / distance) ** 2

    nearest = _edge(r, _first(r, REACH ** (-1 / STRIDES), is_beyond), is_beyond)
    far = _first(r, REACH ** (1 / STRIDES), is_beyond)
    farthest = _edge(r, far, is_beyond)
    axis, eccentricity = (farthest + nearest) / 2, (farthest - nearest) / (farthest + nearest)
    found = np.full((4, len(r)), np.nan)
    bound = np.asarray(is_beyond(far), bool)
    rows = np.flatnonzero(bound & (eccentricity < LARGEST) & (momentum > 0))
    a, e = axis[rows], eccentricity[rows]
    # ln r = ln(a sqrt(1 - e^2)) - atanh(e) cos u, see orbits.central.
    swing = np.log(a * np.sqrt(1 - e**2) / r[rows])
    width = np.arctanh(e)
    cosine = np.divide(swing, width, out=np.ones_like(width), where=width > 0)
    u = np.arccos(np.clip(cosine, -1, 1)) * np.where(outward[rows] < 0, -1, 1)
    mean, angle = central.angles(law, a, e, m1[rows], m2[rows], u)
    place = np.arctan2(position[rows, 1], position[rows, 0])
    found[:, rows] = a, e, place - angle, mean
    return Elements(found[0], found[1], found[2], found[3], m1, m2)


def _first(r: Array, stride: float, is_beyond: Callable[[Array], Array]) -> Array:
    """Return the first of r x stride, r x stride^2, ... that is beyond, or the last, [N].

    Farther out it may be inside again: under a screened law an orbit can be bound by a barrier.
    """
    found = r * stride
    for _ in range(STRIDES - 1):
        found = np.where(is_beyond(found), found, found * stride)
    return found


def _edge(inside: Array, outside: Array, is_beyond: Callable[[Array], Array]) -> Array:
    """Return the border of ``is_beyond`` between a distance inside and one outside, [N]."""
    for _ in range(HALVINGS):
        middle = np.sqrt(inside * outside)
        beyond = is_beyond(middle)
        inside, outside = np.where(beyond, inside, middle), np.where(beyond, middle, outside)
    return np.sqrt(inside * outside)
