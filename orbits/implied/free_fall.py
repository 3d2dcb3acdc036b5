"""The unlike fall of two bodies towards a third: what a path of three shows of their kinds.

By Newton's law every body falls alike, whatever its mass. Where bodies are of several kinds
(:mod:`orbits.disturbed`), two of unlike kinds fall unlike towards a third, and no choice of masses
explains that.

A path is asked what it obeys itself, not whether it follows the truth. With u_j the inverse square
towards body j along the path, a body's places are

    x(t) = x(0) + v(0) t + sum over j of mu_j integral of (t - s) u_j(s) over s in [0, t],

which is linear in the two constants and in the strengths mu_j: one least squares for each body. All
of the path bears on it, where second differences would see little but the errors of places.

What is counted are systems that fall as theirs do, since a slope over systems is fooled: a robust
one shows what most of them do, another one what a few wild ones do. Errors of places lower the
count, so that it is read beside the truth in bins and the truth with a model's own errors. It asks
for an unlike acceleration and not for its law: one that is carried on from the prompt's end would
count for a while.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_interp_spline

from orbits.arithmetic import Array
from orbits.implied.pulls import NODES
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.runs import statistics
from orbits.runs.statistics import Interval

NEAREST = 1e-2
"""Least distance in AU: of two bodies in one bin an inverse square has no value."""
DEGREE = 5
"""Degree of the spline through the places."""


class Attractions(NamedTuple):
    """Factors of the pulls between planet, star and third body as paths show them, N systems.

    Attributes:
        unlike: Factor of the third body's pull on the planet less that on the star, [N].
        mutual: Factor of the pull between planet and star, [N].
    """

    unlike: Array
    mutual: Array


def attractions(places: Array, dt: Array, mass: Array) -> Attractions:
    """Return the factors that paths show, by least squares along each; NaN of a path with a NaN.

    Args:
        places: Planet, star and third body in AU at S equally spaced times, [N, S, 3, 2].
        dt: Time step in years, [N].
        mass: Their masses as they are, in solar masses, [N, 3].
    """
    known = np.asarray(np.isfinite(places).all(axis=(1, 2, 3)))
    places = np.where(known[:, None, None, None], places, 0.0)
    strengths = []
    for body, partner in ((0, 1), (1, 0)):
        columns = _columns(places, body, (partner, 2), dt)
        unit = GRAVITATIONAL_CONSTANT * mass[:, [partner, 2]]
        columns[..., -2:] *= unit[:, None]
        path = places[:, :, body].reshape(len(places), -1)
        strengths.append(np.einsum("npk,nk->np", np.linalg.pinv(columns), path)[:, -2:])
    planet, star = strengths
    share = mass[:, :2] / mass[:, :2].sum(axis=1, keepdims=True)
    return Attractions(
        unlike=np.where(known, planet[:, 1] - star[:, 1], np.nan),
        # The relative acceleration of the two: each is pulled by the other's mass.
        mutual=np.where(known, share[:, 1] * planet[:, 0] + share[:, 0] * star[:, 0], np.nan),
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
        apart = make_interp_spline(time, places[:, :, other] - places[:, :, body], DEGREE, axis=1)(
            when
        )
        distance = np.maximum(np.linalg.norm(apart, axis=-1, keepdims=True), NEAREST)
        pull = np.einsum("kq,nqc->nkc", left, apart / distance**3)
        columns.append((pull * dt[:, None, None] ** 2)[..., None])
    return np.asarray(np.concatenate(columns, axis=-1).reshape(n, 2 * steps, -1))


def followed(found: Attractions, coupling: Array) -> dict[str, Interval]:
    """Return the unlike fall of paths, and how many of the world's factors they meet.

    Args:
        found: What paths show, of N systems.
        coupling: Factors of the world between planet, star and third body, [N, 3, 3].

    Returns:
        With 95% intervals over systems:

        * ``unlike_fall``, the median size of the shown difference in fall, by Newton's law 0 up to
          the errors of places;
        * ``fall_met``, of the systems whose two bodies fall unlike the share whose shown difference
          is within half of the world's: nearer to it than to none, and not beyond it;
        * ``pull_met``, the share of systems whose shown pull between planet and star is within a
          factor of 2^(1/2) of the world's, so that no other of the kinds 1/2, 1 and 2 is nearer.

        Shares are left out in a world whose bodies are all alike.
    """
    shown = np.nan_to_num(np.abs(found.unlike), nan=np.inf)
    metrics = {"unlike_fall": statistics.median(shown[:, None])}
    if np.all(coupling == 1):
        return metrics
    unlike = coupling[:, 0, 2] - coupling[:, 1, 2]
    falls = unlike != 0
    met = np.abs(found.unlike - unlike)[falls] < np.abs(unlike[falls]) / 2
    ratio = np.maximum(np.nan_to_num(found.mutual), 0) / coupling[:, 0, 1]
    pulls = (ratio > 0.5**0.5) & (ratio < 2**0.5)
    return metrics | {"fall_met": _share(met), "pull_met": _share(pulls)}


def _share(met: npt.NDArray[np.bool_]) -> Interval:
    if not len(met):
        return Interval(np.nan, -np.inf, np.inf)
    return statistics.mean(met.astype(np.float64), np.ones(len(met)))
