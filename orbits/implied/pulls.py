"""Pulls: a path's evidence of the acceleration between two bodies, without a finite difference.

With a(t) the acceleration, two identities are exact at any time step dt:

    x(t + dt) - 2 x(t) + x(t - dt) = integral of (dt - |s|) a(t + s) over s in [-dt, dt],
    x(t + dt) - x(t) - v(t) dt     = integral of (dt - s) a(t + s) over s in [0, dt].

The first needs places alone, so it asks a path what law it obeys itself. The second asks a
predicted next place for the kick behind it; place and velocity at t are then true ones. A trial
law r^n along the path gives the right side by Gauss and Legendre's rule, so that nothing is biased
by the time step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from orbits.arithmetic import Array

NODES = 8
"""Nodes of the quadrature, on each side of a point."""
NEAREST = 1e-3
"""Least distance in AU: two bodies may be put into one bin, where r^n has no value."""


class Pulls(NamedTuple):
    """Pulls towards the other body in N sequences at K steps, and the path that makes them.

    Attributes:
        seen: The pull in AU, positive where there is attraction, [N, K].
        distance: Distance in AU along the path, at Q nodes, [N, K, Q].
        weight: Weight of each node in years^2, so that an acceleration c r^n (AU / year^2) towards
            the other body gives ``seen = c sum(weight * distance**n)``, [N, K, Q].
    """

    seen: Array
    distance: Array
    weight: Array

    def trial(self, exponent: float) -> Array:
        """Return the pull of the acceleration r^n, AU^n in place of AU / year^2, [N, K]."""
        return np.einsum("nkq,nkq->nk", self.weight, self.distance**exponent)


def of_path(relative: Array, dt: Array, first: int) -> Pulls:
    """Return the pulls that a path shows by its own second differences.

    Args:
        relative: Planet - star in AU at S equally spaced times, [N, S, 2]. Between them the path is
            its cubic spline.
        dt: Time step in years, [N].
        first: First step of which a pull is asked, 1 or later; the last is S - 2.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    shift = np.concatenate([(nodes - 1) / 2, (nodes + 1) / 2])
    share = np.tile(weights / 2, 2) * (1 - np.abs(shift))
    steps = np.arange(first, relative.shape[1] - 1)
    places = CubicSpline(np.arange(relative.shape[1]), relative, axis=1)(np.add.outer(steps, shift))
    bend = relative[:, steps + 1] - 2 * relative[:, steps] + relative[:, steps - 1]
    return _towards(relative[:, steps], -bend, places, np.multiply.outer(dt**2, share))


def of_steps(kick: Array, nodes: Array, dt: Array) -> Pulls:
    """Return the pulls behind predicted next places.

    Args:
        kick: Predicted next place less the straight line, of planet - star or of the planet alone
            (of the star alone: with its sign turned), AU, [N, K, 2].
        nodes: True planet - star at the times of :func:`node_times` after each step, AU,
            [N, K, Q, 2].
        dt: Time step in years, [N].
    """
    _, share = _kick_rule()
    # The direction of the whole kick, which is that of its centroid up to second order.
    centre = np.einsum("q,nkqc->nkc", share / share.sum(), nodes)
    return _towards(centre, -kick, nodes, np.multiply.outer(dt**2, share))


def node_times() -> Array:
    """Return the times within a step at which a path is asked, in steps, [Q]."""
    return _kick_rule()[0]


def _kick_rule() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    shift = (nodes + 1) / 2
    return shift, weights / 2 * (1 - shift)


def _towards(along: Array, inward: Array, places: Array, weight: Array) -> Pulls:
    """Return pulls as components along a direction, [N, K, 2]."""
    direction = along / np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), NEAREST)
    distance = np.maximum(np.linalg.norm(places, axis=-1), NEAREST)
    cosine = np.einsum("nkqc,nkc->nkq", places, direction) / distance
    return Pulls(
        seen=np.sum(inward * direction, axis=-1),
        distance=distance,
        weight=weight[:, None] * cosine,
    )
