"""Implied forces of cells of like r, m1 and m2: the points of a prediction file.

They are those behind single predicted steps, or those that a continued path shows itself.

A single implied force has the error of a predicted place over dt^2, so medians are taken before a
search sees it. F = 2 m kick / dt^2 is the force at about t + dt / 3, the centroid of the weights of
a kick; unlike the identity of :mod:`orbits.implied.pulls`, that is biased by less than a percent.
"""

from __future__ import annotations

import numpy as np

from orbits.arithmetic import Array
from orbits.implied.one_step import OneStep
from orbits.implied.pulls import Pulls


def implied_forces(
    steps: OneStep,
    points: Array,
    n_cells: int,
    spread: Array | None = None,
    least_signal: float = 0.0,
) -> dict[str, Array]:
    """Return medians over cells of points that lie close in ln r, ln m1 and ln m2.

    Args:
        steps: The systems.
        points: Predicted rows in AU, [N, T, 2].
        n_cells: Number of cells; as many as points, where there are fewer.
        spread: Standard deviations of predicted rows by who predicts them, AU, [N, T, 2].
        least_signal: Points are left out whose kick is not as many times its spread. What is left
            is chosen by its own errors, so that its forces are too large.

    Returns:
        ``r`` (AU), ``m1``, ``m2`` (solar masses) and ``force_predicted`` (solar mass AU / year^2),
        positive where there is attraction, each [n_cells].
    """
    kick, masses = steps.kicks(points), np.stack([steps.m1, steps.m2])
    rows = []
    for body, (mass, own) in enumerate(zip(masses, (kick.planet, -kick.star), strict=True)):
        pulls = steps.pulls(own)
        force = 2 * mass[:, None] * pulls.seen / steps.dt[:, None] ** 2
        found = _rows(pulls, masses, force)
        if spread is not None:
            own_spread = np.sqrt(np.mean(spread[:, steps.rows + body] ** 2, axis=-1))
            found = found[(np.abs(pulls.seen) >= least_signal * own_spread).reshape(-1)]
        rows.append(found)
    return _medians(np.concatenate(rows), n_cells)


def path_forces(pulls: Pulls, m1: Array, m2: Array, n_cells: int) -> dict[str, Array]:
    """Return medians over cells of the forces that paths show by their second differences.

    A path of planet - star shows the acceleration between both, F (1 / m1 + 1 / m2), where action
    equals reaction; the masses are the true ones. A point is the mean force over two time steps at
    the mean distance, which is not where that force is exact: true orbits of Newton's world have
    r^-2.008 and a constant that is 0.8% too large.

    Args:
        pulls: Pulls of N paths (:func:`orbits.implied.pulls.of_path`).
        m1: Planet masses in solar masses, [N].
        m2: Star masses in solar masses, [N].
        n_cells: Number of cells.

    Returns:
        As :func:`implied_forces`, but for points where two bodies were put into one place.
    """
    weight = pulls.weight.sum(axis=2)
    acceleration = np.divide(pulls.seen, weight, out=np.full_like(weight, np.nan), where=weight > 0)
    rows = _rows(pulls, np.stack([m1, m2]), (m1 * m2 / (m1 + m2))[:, None] * acceleration)
    return _medians(rows[np.isfinite(rows).all(axis=1)], n_cells)


def _rows(pulls: Pulls, masses: Array, force: Array) -> Array:
    """Return ln r, ln m1, ln m2 and the force of every point, [N K, 4]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.einsum("nkq,nkq->nk", pulls.weight, pulls.distance) / pulls.weight.sum(axis=2)
        far = np.log(middle)
    both = np.broadcast_to(np.log(masses)[..., None], (2, *force.shape))
    return np.stack([far, *both, force], axis=-1).reshape(-1, 4)


def _medians(table: Array, n_cells: int) -> dict[str, Array]:
    """Return the columns of a prediction file; of fewer points than cells, the points."""
    if not len(table):
        return {name: np.empty(0) for name in ("r", "m1", "m2", "force_predicted")}
    cells = _cells(table, min(n_cells, len(table)))
    middles = np.array([np.median(cell, axis=0) for cell in cells])
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
