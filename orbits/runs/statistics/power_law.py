"""The power law whose exponents are measured, and the slope within groups, by least squares.

Points of one group (a sequence) share their masses and their errors, so a bootstrap draws whole
groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits.runs.statistics.bootstrap import Array, percentiles, resampled
from orbits.runs.statistics.interval import Interval

MINIMUM_GROUPS = 10
"""Groups that an interval of an exponent needs. Masses differ between sequences only, and a
resample of few often holds too few different ones to determine their exponents: two or fewer in
10% of those of 5, in 0.0005% of those of 10."""


@dataclass(frozen=True)
class PowerLaw:
    """A fit of ``y = constant * prod_i x_i ** exponents[i]``.

    Attributes:
        exponents: The exponent of each input.
        constant: The fitted value where every input is 1.
        n_groups: Number of groups.
        n_boot: Number of resamples behind the intervals; 0 where there are none.
    """

    exponents: tuple[Interval, ...]
    constant: Interval
    n_groups: int
    n_boot: int


def power_law(
    inputs: npt.ArrayLike,
    values: npt.ArrayLike,
    groups: npt.ArrayLike,
    n_boot: int = 2000,
    seed: int = 0,
) -> PowerLaw:
    """Fit a power law by log-linear least squares, with bootstrap intervals over groups.

    A resample draws as many groups as there are, with replacement. Each group enters only
    through its normal equations, so a resample is a weighted sum of small blocks.

    Args:
        inputs: Positive inputs, shape [n, d].
        values: Positive values, shape [n].
        groups: The group that each point comes from, shape [n], any dtype.
        n_boot: Number of resamples; none is drawn of fewer than ``MINIMUM_GROUPS`` groups.
        seed: Seed of the resampling.

    Raises:
        ValueError: The inputs do not determine the exponents: one never varies, or two vary
            together.
    """
    logs = np.log(np.asarray(inputs, np.float64))
    centre = logs.mean(axis=0)  # centred columns keep the normal equations well conditioned
    design = np.column_stack([np.ones(len(logs)), logs - centre])
    spreads = np.linalg.svd(design, compute_uv=False)
    # The equations are the design's squares, of which float64 keeps ratios down to 1e-15.
    least = max(1e-8 * len(design) ** 0.5, 1e-7 * spreads[0])
    if len(spreads) < design.shape[1] or spreads[-1] < least:
        raise ValueError("the points do not determine the exponents")
    equations = _normal_equations(design, np.log(np.asarray(values, np.float64)), groups)

    def solved(sums: Array) -> Array:
        solution = _solve(sums)
        constant = np.exp(solution[..., 0] - solution[..., 1:] @ centre)
        return np.concatenate([solution[..., 1:], constant[..., None]], axis=-1)

    *exponents, constant = _coefficients(equations, solved, n_boot, seed)
    bounded = len(equations) >= MINIMUM_GROUPS
    return PowerLaw(tuple(exponents), constant, len(equations), n_boot if bounded else 0)


def within_slope(
    x: npt.ArrayLike, y: npt.ArrayLike, groups: npt.ArrayLike, n_boot: int = 2000, seed: int = 0
) -> Interval | None:
    """Return the slope of ``y`` on ``x`` with a level for each group (the fixed-effects estimator).

    Args:
        x: Shape [n].
        y: Shape [n].
        groups: The group that each point comes from, shape [n].
        n_boot: Number of resamples of groups.
        seed: Seed of the resampling.

    Returns:
        The slope, or None where ``x`` varies in no group. Groups in which it does not vary say
        nothing: they are neither drawn nor counted.
    """
    _, index, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    both = np.column_stack([np.asarray(x, np.float64), np.asarray(y, np.float64)])
    both = both - (_group_sums(both, index, len(counts)) / counts[:, None])[index]
    varies = (np.bincount(index, both[:, 0] ** 2) > 1e-16)[index]
    if not varies.any():
        return None
    equations = _normal_equations(both[varies, :1], both[varies, 1], index[varies])
    return _coefficients(equations, _solve, n_boot, seed)[0]


def _normal_equations(design: Array, values: Array, groups: npt.ArrayLike) -> Array:
    """Return [A'A | A'b] of each group, shape [n_groups, k * (k + 1)]."""
    labels, index = np.unique(np.asarray(groups), return_inverse=True)
    products = design[:, :, None] * np.column_stack([design, values])[:, None, :]
    return _group_sums(products.reshape(len(design), -1), index, len(labels))


def _group_sums(table: Array, index: npt.NDArray[Any], n_groups: int) -> Array:
    """Return the sums of rows [n, k] over groups, shape [n_groups, k]."""
    return np.stack([np.bincount(index, column, n_groups) for column in table.T], axis=-1)


def _solve(sums: Array) -> Array:
    """Solve summed normal equations [..., k * (k + 1)], shape [..., k].

    A resample of few groups can be singular; the pseudo-inverse then gives the solution of least
    norm instead of an error.
    """
    k = math.isqrt(sums.shape[-1])
    equations = sums.reshape(*sums.shape[:-1], k, k + 1)
    inverse = np.linalg.pinv(equations[..., :k], hermitian=True)
    return (inverse @ equations[..., k:])[..., 0]


def _coefficients(
    equations: Array, statistic: Callable[[Array], Array], n_boot: int, seed: int
) -> list[Interval]:
    """Return the estimates that a statistic makes of normal equations, with their intervals."""
    values = [float(value) for value in statistic(equations.sum(axis=0))]
    if len(equations) < MINIMUM_GROUPS:
        return [Interval(value, -math.inf, math.inf) for value in values]
    if not n_boot:
        return [Interval(value, value, value) for value in values]
    samples = resampled(equations, statistic, n_boot, seed)
    return [percentiles(*pair) for pair in zip(values, samples.T, strict=True)]
