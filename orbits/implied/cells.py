"""Implied forces of cells of like r, m1 and m2: the points of a prediction file.

A single implied force has the error of a predicted place over dt^2, so medians are taken before a
search sees it. F = 2 m kick / dt^2 is the force at about t + dt / 3, the centroid of the weights of
a kick; unlike the identity of :mod:`orbits.implied.pulls`, that is biased by half a percent.
"""

from __future__ import annotations

import numpy as np

from orbits.arithmetic import Array
from orbits.implied.one_step import OneStep


def implied_forces(steps: OneStep, points: Array, n_cells: int) -> dict[str, Array]:
    """Return medians over cells of points that lie close in ln r, ln m1 and ln m2.

    Args:
        steps: The systems.
        points: Predicted rows in AU, [N, T, 2].
        n_cells: Number of cells.

    Returns:
        ``r`` (AU), ``m1``, ``m2`` (solar masses) and ``force_predicted`` (solar mass AU / year^2),
        positive where there is attraction, each [n_cells].
    """
    kick, masses = steps.kicks(points), np.stack([steps.m1, steps.m2])
    rows = []
    for mass, own in zip(masses, (kick.planet, -kick.star), strict=True):
        pulls = steps.pulls(own)
        force = 2 * mass[:, None] * pulls.seen / steps.dt[:, None] ** 2
        middle = np.einsum("nkq,nkq->nk", pulls.weight, pulls.distance) / pulls.weight.sum(axis=2)
        both = np.broadcast_to(np.log(masses)[..., None], (2, *force.shape))
        rows.append(np.stack([np.log(middle), *both, force], axis=-1).reshape(-1, 4))
    middles = np.array([np.median(cell, axis=0) for cell in _cells(np.concatenate(rows), n_cells)])
    r, m1, m2 = np.exp(middles[:, :3]).T
    return {"r": r, "m1": m1, "m2": m2, "force_predicted": middles[:, 3]}


def _cells(table: Array, n: int) -> list[Array]:
    """Return the rows [points, 4] in n parts, halved each time where the logarithms spread most."""
    if n < 2 or len(table) < 2:
        return [table]
    widest = np.argmax(np.ptp(table[:, :3], axis=0))
    order = np.argsort(table[:, widest], kind="stable")
    middle = len(order) * (n // 2) // n
    return _cells(table[order[:middle]], n // 2) + _cells(table[order[middle:]], n - n // 2)
