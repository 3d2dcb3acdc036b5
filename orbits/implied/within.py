"""The exponent within orbits: how a force changes with the distance along each orbit alone.

Every sequence has a constant of its own, so neither masses nor the strength of an orbit's force
play a part: only what changes along it. With the scale of the errors fixed, the best constant of a
sequence depends on the exponent and on that sequence alone; so the loss of all is a sum of curves,
one for each sequence, and a bootstrap over sequences is a sum of other multiples of them. Curves
are known on a grid, where no start decides which minimum is found.
"""

from __future__ import annotations

import numpy as np

from orbits.arithmetic import Array
from orbits.implied import robust
from orbits.implied.pulls import Pulls
from orbits.runs.statistics import Interval
from orbits.runs.statistics.bootstrap import percentiles, resampled

GRID = np.linspace(-6, 6, 121)
"""Exponents at which losses are known; between them they are parabolas."""
STEEPEST = float(GRID[-2]) - 0.05
"""From here on a minimum is the end of the grid, and no power of the distance was found."""
ROUNDS = 5
"""Rounds of re-weighted least squares for the constants, which start at a median."""


def within(pulls: Pulls, n_boot: int = 200, seed: int = 0) -> Interval:
    """Return the exponent n of c_i r^n with its 95% interval over sequences.

    A constant is never negative: a force that pushes is no attraction with another sign.

    Args:
        pulls: Pulls of N sequences.
        n_boot: Number of resamples of sequences.
        seed: Seed of the resampling.

    Returns:
        At an end of the grid no power of the distance describes these pulls (:func:`is_power`).

    Raises:
        ValueError: There are fewer than two sequences.
    """
    return percentiles(*within_resampled(pulls, n_boot, seed))


def is_power(exponent: float) -> bool:
    """Return whether an exponent is one, and not an end of the grid, where no power was found."""
    return abs(exponent) < STEEPEST


def within_least_squares(pulls: Pulls, n_boot: int = 200, seed: int = 0) -> Interval:
    """Return the exponent of :func:`within` by plain least squares, which a few wild places move.

    It stands beside the robust one to tell how much depends on that choice.
    """
    trials = np.stack([pulls.trial(n) for n in GRID])
    constant = np.sum(trials * pulls.seen, axis=2) / np.maximum(np.sum(trials**2, axis=2), 1e-300)
    left = pulls.seen - np.maximum(constant, 0)[..., None] * trials
    losses = np.sum(left**2, axis=2).T  # [N, G]
    value = float(_lowest(losses.sum(axis=0)))
    return percentiles(value, resampled(losses, _lowest, n_boot, seed))


def within_resampled(pulls: Pulls, n_boot: int = 200, seed: int = 0) -> tuple[float, Array]:
    """Return the exponent of :func:`within` and that of each resample, [n_boot].

    Resamples of as many sequences under one seed are of the same sequences.
    """
    if len(pulls.seen) < 2:
        raise ValueError(f"an exponent within orbits needs two sequences, got {len(pulls.seen)}")
    trials = np.stack([pulls.trial(n) for n in GRID])  # [G, N, K]
    typical = float(np.median(np.abs(pulls.seen)))
    seen = np.broadcast_to(pulls.seen, trials.shape)
    # Two bodies that a model puts into one place have no direction, and so no pull.
    ratios = np.divide(seen, trials, out=np.zeros_like(trials), where=trials > 0)
    start = np.maximum(np.median(ratios, axis=2), 0)[..., None]
    spread = robust.scale(pulls.seen - start * trials, typical, axis=(1, 2))
    sigma = float(spread.min())  # the scale of the errors is that where they are smallest
    losses = _losses(trials, pulls.seen, start, sigma).T  # [N, G]
    return float(_lowest(losses.sum(axis=0))), resampled(losses, _lowest, n_boot, seed)


def _losses(trials: Array, seen: Array, constant: Array, sigma: float) -> Array:
    """Return the loss of each sequence with its best constant, [G, N]."""
    for _ in range(ROUNDS):
        weighted = robust.weight((seen - constant * trials) / sigma) * trials
        fitted = np.sum(weighted * seen, axis=2) / np.maximum(
            np.sum(weighted * trials, axis=2), 1e-300
        )
        constant = np.maximum(fitted, 0)[..., None]
    return np.sum(robust.loss((seen - constant * trials) / sigma), axis=2)


def _lowest(curves: Array) -> Array:
    """Return the minima of curves [..., G] over the grid, by a parabola through three points."""
    at = np.clip(np.argmin(curves, axis=-1), 1, len(GRID) - 2)
    left, middle, right = (
        np.take_along_axis(curves, (at + k)[..., None], axis=-1)[..., 0] for k in (-1, 0, 1)
    )
    bend = left - 2 * middle + right
    shift = np.divide(left - right, 2 * bend, out=np.zeros_like(bend), where=bend > 0)
    return GRID[at] + np.clip(shift, -1, 1) * (GRID[1] - GRID[0])
