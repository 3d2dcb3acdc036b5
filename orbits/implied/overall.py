"""The law over all orbits: exponents of both masses and of the distance, and the constant.

The acceleration c m1^a m2^b r^n is fitted to the pulls on one body, in places and not in
logarithms, since a pull that errors have turned round has none.

The exponents of the masses are no evidence of a law. The body's own mass leaves its acceleration
by F = m a, and the other's comes with the visible past: cubic extrapolation has both. What tells a
law from an extrapolator is the distance, above all within orbits, and the constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orbits.arithmetic import Array
from orbits.implied import robust
from orbits.implied.pulls import Pulls
from orbits.runs.statistics import Interval
from orbits.runs.statistics.bootstrap import percentiles, resampled

ROUNDS = 60
SETTLED = 1e-10
"""Change of a parameter below which a fit has ended."""


class Overall(NamedTuple):
    """A power law of an acceleration.

    Attributes:
        exponents: Exponents of m1, m2 and r.
        constant: At 1 AU and masses of 1, AU^3 / (solar mass year^2) where the law is Newton's.
        constants: The constant in each resample, [n_boot]; those of both bodies under one seed are
            of the same sequences.
    """

    exponents: tuple[Interval, Interval, Interval]
    constant: Interval
    constants: Array


def overall(pulls: Pulls, m1: Array, m2: Array, n_boot: int = 200, seed: int = 0) -> Overall | None:
    """Return the power law of an acceleration with 95% intervals over sequences.

    A resample takes one Gauss-Newton step from the fit of all: where residuals are small, its fit
    to first order.

    Args:
        pulls: On one body, in N sequences.
        m1: Planet masses in solar masses, [N].
        m2: Star masses in solar masses, [N].
        n_boot: Number of resamples of sequences.
        seed: Seed of the resampling.

    Returns:
        None where most pulls push, or where the fit runs away to a power that no number holds:
        there is no attraction to describe.
    """
    if np.median(pulls.seen) <= 0:
        return None
    theta = _start(pulls, m1, m2)
    trust = 0.5
    for _ in range(ROUNDS):
        predicted, jacobian = _model(pulls, m1, m2, theta)
        if not np.isfinite(jacobian).all():
            return None
        residual = pulls.seen - predicted
        sigma = float(robust.scale(residual, float(np.median(np.abs(pulls.seen)))))
        weighted = robust.weight(residual / sigma)[..., None] * jacobian
        step = np.linalg.lstsq(
            np.einsum("nkp,nkq->pq", weighted, jacobian),
            np.einsum("nkp,nk->p", weighted, residual),
        )[0]
        theta = theta + np.clip(step, -trust, trust)
        if np.abs(step).max() < SETTLED:
            break
        trust = max(0.95 * trust, 1e-3)  # a fit that swings between two minima ends in one
    predicted, jacobian = _model(pulls, m1, m2, theta)
    residual = (pulls.seen - predicted) / sigma
    slope = np.einsum("nk,nkp->np", robust.weight(residual) * residual * sigma, jacobian)
    curve = np.einsum("nk,nkp,nkq->npq", robust.curvature(residual), jacobian, jacobian)
    table = np.concatenate([slope, curve.reshape(len(curve), -1)], axis=1)

    def fitted(sums: Array) -> Array:
        bend = sums[..., 4:].reshape(*sums.shape[:-1], 4, 4)
        return theta + np.asarray(np.linalg.pinv(bend) @ sums[..., :4, None])[..., 0]

    drawn = resampled(table, fitted, n_boot, seed)
    constants = np.exp(drawn[:, 0])
    a, b, n = (percentiles(float(theta[k]), drawn[:, k]) for k in (1, 2, 3))
    return Overall((a, b, n), percentiles(float(np.exp(theta[0])), constants), constants)


def _start(pulls: Pulls, m1: Array, m2: Array) -> Array:
    """Return (ln c, a, b, n) by least squares of logarithms, of the pulls that are positive."""
    mean = pulls.weight.sum(axis=2)
    # Two bodies that a model puts into one place have no direction, and so no weight.
    sequence, step = np.nonzero((pulls.seen > 0) & (mean > 0))
    whole = np.where(mean > 0, mean, np.nan)
    far = np.einsum("nkq,nkq->nk", pulls.weight, np.log(pulls.distance)) / whole
    design = np.column_stack(
        [np.ones(len(sequence)), np.log(m1)[sequence], np.log(m2)[sequence], far[sequence, step]]
    )
    strength = (pulls.seen / whole)[sequence, step]
    return np.linalg.lstsq(design, np.log(strength))[0]


def _model(pulls: Pulls, m1: Array, m2: Array, theta: Array) -> tuple[Array, Array]:
    """Return the pulls of (ln c, a, b, n), [N, K], and their derivatives, [N, K, 4]."""
    logs = np.log(pulls.distance)
    with np.errstate(over="ignore", invalid="ignore"):
        constant = np.exp(theta[0] + theta[1] * np.log(m1) + theta[2] * np.log(m2))[:, None]
        terms = pulls.weight * np.exp(theta[3] * logs)
    predicted = constant * terms.sum(axis=2)
    by_exponent = constant * np.einsum("nkq,nkq->nk", terms, logs)
    return predicted, np.stack(
        [
            predicted,
            predicted * np.log(m1)[:, None],
            predicted * np.log(m2)[:, None],
            by_exponent,
        ],
        axis=-1,
    )
