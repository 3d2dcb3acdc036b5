"""The unlike fall of two bodies towards a third: what a path of three shows of their kinds.

By Newton's law every body falls alike, whatever its mass. Where bodies are of several kinds
(:mod:`orbits.disturbed`), two of unlike kinds fall unlike towards a third, and no choice of masses
explains that.

A path is asked what it obeys itself, not whether it follows the truth. With u_j the inverse square
towards body j along the path, a body's places are

    x(t) = x(0) + v(0) t + sum over j of mu_j integral of (t - s) u_j(s) over s in [0, t],

which is linear in the two constants and in the strengths mu_j: one least squares for each body. All
of the path bears on it, where second differences would see little but the errors of places.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from orbits.arithmetic import Array
from orbits.implied import robust
from orbits.implied.pulls import NODES
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.runs import statistics
from orbits.runs.statistics import Interval
from orbits.runs.statistics.bootstrap import percentiles

NEAREST = 1e-2
"""Least distance in AU: of two bodies in one bin an inverse square has no value."""
ROUNDS = 20
"""Rounds of re-weighted least squares for a slope."""


class Attractions(NamedTuple):
    """Factors of the pulls between planet, star and third body as paths show them, N systems.

    Attributes:
        unlike: Factor of the third body's pull on the planet less that on the star, [N].
        spread: Its standard deviation, for errors of places of 1 AU, [N].
        mutual: Factor of the pull between planet and star, [N].
    """

    unlike: Array
    spread: Array
    mutual: Array


def attractions(places: Array, dt: Array, mass: Array) -> Attractions:
    """Return the factors that paths show, by least squares along each.

    Args:
        places: Planet, star and third body in AU at S equally spaced times, [N, S, 3, 2].
        dt: Time step in years, [N].
        mass: Their masses as they are, in solar masses, [N, 3].
    """
    strengths, variances = [], []
    for body, partner in ((0, 1), (1, 0)):
        columns = _columns(places, body, (partner, 2), dt)
        unit = GRAVITATIONAL_CONSTANT * mass[:, [partner, 2]]
        columns[..., -2:] *= unit[:, None]
        inverse = np.linalg.pinv(columns)
        path = places[:, :, body].reshape(len(places), -1)
        strengths.append(np.einsum("npk,nk->np", inverse, path)[:, -2:])
        variances.append(np.sum(inverse[:, -1] ** 2, axis=1))
    planet, star = strengths
    share = mass[:, :2] / mass[:, :2].sum(axis=1, keepdims=True)
    return Attractions(
        unlike=planet[:, 1] - star[:, 1],
        spread=np.sqrt(variances[0] + variances[1]),
        # The relative acceleration of the two: each is pulled by the other's mass.
        mutual=share[:, 1] * planet[:, 0] + share[:, 0] * star[:, 0],
    )


def _columns(places: Array, body: int, others: tuple[int, ...], dt: Array) -> Array:
    """Return what a body's places are sums of, [N, 2 S, 4 + O]: constants, then pulls of others."""
    n, steps = places.shape[:2]
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    when = (np.arange(steps - 1)[:, None] + (nodes + 1) / 2).reshape(-1)
    left = np.maximum(np.arange(steps)[:, None] - when, 0) * np.tile(weights / 2, steps - 1)
    time, zero = np.arange(steps), np.zeros(steps)
    straight = np.stack([np.stack([each, zero], 1) for each in (zero + 1, time)], 2)
    straight = np.concatenate([straight, straight[:, ::-1]], axis=2)  # [S, 2, 4]
    columns = [np.broadcast_to(straight, (n, steps, 2, 4))]
    for other in others:
        apart = CubicSpline(time, places[:, :, other] - places[:, :, body], axis=1)(when)
        distance = np.maximum(np.linalg.norm(apart, axis=-1, keepdims=True), NEAREST)
        pull = np.einsum("kq,nqc->nkc", left, apart / distance**3)
        columns.append((pull * dt[:, None, None] ** 2)[..., None])
    return np.asarray(np.concatenate(columns, axis=-1).reshape(n, 2 * steps, -1))


def followed(found: Attractions, coupling: Array) -> dict[str, Interval]:
    """Return the unlike fall of paths, and the share of the world's factors that they follow.

    Args:
        found: What paths show, of N systems.
        coupling: Factors of the world between planet, star and third body, [N, 3, 3].

    Returns:
        With 95% intervals over systems:

        * ``unlike_fall``, the median size of the shown difference in fall, 0 by Newton's law;
        * ``fall_followed``, the slope of the shown difference in fall over that of the world: 1 in
          the world itself, 0 where all bodies fall alike;
        * ``pull_followed``, the slope of the logarithm of the shown pull between planet and star
          over that of the world's factor. Masses can take its place in part, so that an observer
          who knows of no kinds has more than 0. Paths that push have none.

        Slopes are left out in a world whose bodies are all alike.
    """
    metrics = {"unlike_fall": statistics.median(np.abs(found.unlike)[:, None])}
    if np.all(coupling == 1):
        return metrics
    unlike = coupling[:, 0, 2] - coupling[:, 1, 2]
    weight = 1 / found.spread
    attracted = found.mutual > 0
    factor = np.log(coupling[attracted, 0, 1])
    return metrics | {
        "fall_followed": _slope(unlike * weight, found.unlike * weight),
        "pull_followed": _slope(factor, np.log(found.mutual[attracted])),
    }


def _slope(x: Array, y: Array, n_boot: int = 200, seed: int = 0) -> Interval:
    """Return the robust slope of y = b x, with a percentile interval over points."""
    if not np.any(x):
        return Interval(np.nan, np.nan, np.nan)
    draws = np.random.default_rng(seed).integers(len(x), size=(n_boot, len(x)))
    value = float(_fitted(x[None], y[None])[0])
    return percentiles(value, _fitted(x[draws], y[draws]))


def _fitted(x: Array, y: Array) -> Array:
    """Return robust slopes of rows [R, N]: bisquare, started at the median of ratios."""
    ratio = np.where(x != 0, y / np.where(x != 0, x, 1), np.nan)
    slope = np.nanmedian(ratio, axis=1)[:, None]
    typical = float(np.median(np.abs(y)))
    sigma = robust.scale(y - slope * x, typical, axis=1)[:, None]
    for _ in range(ROUNDS):
        weighted = robust.weight((y - slope * x) / sigma) * x
        slope = np.sum(weighted * y, axis=1, keepdims=True) / np.maximum(
            np.sum(weighted * x, axis=1, keepdims=True), 1e-300
        )
    return np.asarray(slope[:, 0])
