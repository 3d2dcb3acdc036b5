"""The exponent along orbits without a family of laws: medians of bins, and the slope through them.

:mod:`~orbits.implied.within` fits powers of the distance, and would give one of any law. Here each
pull is divided by its orbit's median and drawn against the distance over its orbit's median; what
bins show is a line only where the law is a power.

Ours; binned medians are the plainest estimate of a curve that assumes no form of it.
"""

from __future__ import annotations

import numpy as np

from orbits.arithmetic import Array
from orbits.implied.pulls import NEAREST, Pulls
from orbits.runs.statistics import Interval
from orbits.runs.statistics.bootstrap import percentiles

BINS = 24
"""Bins of as many points each."""


def family_free(pulls: Pulls, n_boot: int = 200, seed: int = 0) -> Interval | None:
    """Return the slope of ln pull on ln distance through medians of bins, with its 95% interval.

    Args:
        pulls: Pulls of N sequences, in AU.
        n_boot: Number of resamples of sequences.
        seed: Seed of the resampling.

    Returns:
        The slope, a pure number: -2 for Newton's law. None where fewer than half of the bins
        attract: there is no logarithm to draw.
    """
    far, strong = _relative(pulls)
    value = _slope(far, strong)
    if value is None:
        return None
    rows = np.random.default_rng(seed).integers(len(far), size=(n_boot, len(far)))
    drawn = [_slope(far[some], strong[some]) for some in rows]
    return percentiles(value, np.array([np.nan if x is None else x for x in drawn]))


def _relative(pulls: Pulls) -> tuple[Array, Array]:
    """Return distances and accelerations over their orbit's medians, [N, K] each.

    Orbits whose median pull pushes are left out, since all signs of theirs would be turned.
    """
    sizes, mean = np.abs(pulls.weight), pulls.weight.sum(axis=2)
    whole = np.maximum(sizes.sum(axis=2), np.finfo(float).tiny)
    far = np.maximum(np.einsum("nkq,nkq->nk", sizes, pulls.distance) / whole, NEAREST)
    # Bodies in one place have no direction, and no pull.
    strong = np.divide(pulls.seen, mean, out=np.zeros_like(mean), where=mean > 0)
    middle = np.median(strong, axis=1, keepdims=True)
    attracts = middle[:, 0] > 0
    far, strong = far[attracts], strong[attracts] / middle[attracts]
    return far / np.median(far, axis=1, keepdims=True), strong


def _slope(far: Array, strong: Array) -> float | None:
    """Return the slope through the bins that attract; the last few points fill no bin."""
    if far.size < BINS:
        return None
    order = np.argsort(far, axis=None, kind="stable")
    bins = order[: order.size // BINS * BINS].reshape(BINS, -1)
    places, heights = (np.median(values.ravel()[bins], axis=1) for values in (far, strong))
    there = heights > 0
    if there.sum() < BINS / 2:
        return None
    return float(np.polyfit(np.log(places[there]), np.log(heights[there]), 1)[0])
