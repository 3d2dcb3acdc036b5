"""Measures of motion beside the law of two bodies: drag, a changing G, other bodies.

The exponent within orbits (:mod:`orbits.implied.within`) sees none of these: pulls are taken along
the line between the bodies, and each orbit has a constant of its own. Each measure here is zero for
two bodies under a central force that does not change.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import make_interp_spline

from orbits.arithmetic import Array
from orbits.implied.pulls import of_path
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.runs import statistics
from orbits.runs.statistics import Interval

DEGREE = 5
"""Degree of the spline through the places, whose derivative is the velocity."""
NEWTON = -2.0


def beyond(places: Array, dt: Array, mass: Array, first: int) -> dict[str, Interval]:
    """Return medians over sequences, with 95% intervals.

    Args:
        places: Planet and star in AU at S equally spaced times, [N, S, 2, 2].
        dt: Time step in years, [N].
        mass: Both masses together, as they are, in solar masses, [N].
        first: First step that is asked, 1 or later; the last is S - 2.

    Returns:
        * ``drag_rate``, the loss of angular momentum per year;
        * ``g_rate``, the change of the pull's constant per year as a share of its mean;
        * ``off_centre``, the part of the accelerations that no centre of mass of the two explains,
          over their relative acceleration;
        * ``strength``, how far ln of the constant over that of Newton's law and the masses is off
          in either direction.
    """
    relative = places[:, :, 0] - places[:, :, 1]
    steps = np.arange(first, relative.shape[1] - 1)
    found = {
        "drag_rate": -_slope(np.log(_momentum(relative, steps))) / dt,
        "off_centre": _off_centre(places, steps),
    }
    pulls = of_path(relative, dt, first)
    trial, constant = pulls.trial(NEWTON), np.zeros_like(pulls.seen)
    np.divide(pulls.seen, trial, out=constant, where=trial > 0)
    mean = np.median(constant, axis=1)
    attracted = mean > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        found["g_rate"] = np.where(attracted, _slope(constant) / mean / dt, np.nan)
        ratio = mean / (GRAVITATIONAL_CONSTANT * mass)
        found["strength"] = np.where(attracted, np.abs(np.log(ratio)), np.nan)
    return {name: statistics.median(value[:, None]) for name, value in found.items()}


def _momentum(relative: Array, steps: Array) -> Array:
    """Return the size of r x v at some steps, [N, K], in AU^2 per step."""
    path = make_interp_spline(np.arange(relative.shape[1]), relative, k=DEGREE, axis=1)
    place, velocity = relative[:, steps], path.derivative()(steps)
    cross = place[..., 0] * velocity[..., 1] - place[..., 1] * velocity[..., 0]
    return np.maximum(np.abs(cross), np.finfo(float).tiny)


def _slope(values: Array) -> Array:
    """Return the least-squares slope of rows [N, K] per step, [N]."""
    time = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    return np.asarray(values @ time / (time @ time))


def _off_centre(places: Array, steps: Array) -> Array:
    """Return the share of accelerations that no fixed centre explains, [N]."""
    bend = places[:, steps + 1] - 2 * places[:, steps] + places[:, steps - 1]
    planet, star = bend[:, :, 0].reshape(len(bend), -1), bend[:, :, 1].reshape(len(bend), -1)
    apart = planet - star
    size = np.maximum(np.sum(apart**2, axis=1), np.finfo(float).tiny)
    share = -np.sum(star * apart, axis=1) / size  # least squares of star + share * apart = 0
    left = star + share[:, None] * apart
    return np.sqrt(np.sum(left**2, axis=1) / size)
