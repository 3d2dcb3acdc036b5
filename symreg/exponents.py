"""The primary measurement: exponents of the predicted force, read off predictions, not formulas.

``ln y = ln c + sum_x alpha_x ln x`` by least squares, with an interval from a bootstrap over
whole sequences, because the points of one sequence share their masses and their errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symreg import points
from symreg.points import NAMES

Interval = tuple[float, float, float]
MINIMUM_SEQUENCES = 10
"""Below, there is no interval. Masses differ between sequences only, and a resample of few often
holds too few different ones to determine their exponents: two or fewer in 10% of those of 5, in
0.0005% of those of 10."""
_CHUNK = 250  # resamples drawn at once, so that memory stays small with many sequences


@dataclass(frozen=True)
class Exponents:
    """A power law fitted to predictions. Each triple is (value, low, high), a 95% interval.

    Fewer than ``MINIMUM_SEQUENCES`` sequences bound nothing: low and high are infinite.

    Attributes:
        exponents: The exponent of each variable.
        constant: The fitted value where every variable is 1; for Newton's law it is G.
        n_sequences: Number of sequences with at least one usable point.
        n_points: Number of usable points.
        dropped: Share of points without a logarithm.
        n_boot: Number of resamples behind the intervals; 0 where there are none.
    """

    exponents: dict[str, Interval]
    constant: Interval
    n_sequences: int
    n_points: int
    dropped: float
    n_boot: int

    def record(self) -> dict[str, Any]:
        """Return the result as plain JSON data."""
        return asdict(self)


def fit_exponents(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    groups: npt.ArrayLike,
    names: Sequence[str] = NAMES,
    n_boot: int = 2000,
    seed: int = 0,
) -> Exponents:
    """Fit a power law by log-linear least squares, with 95% percentile bootstrap intervals.

    A resample draws as many sequences as there are, with replacement. Each sequence enters only
    through its normal equations, so a resample is a weighted sum of small blocks.

    Args:
        X: Inputs, shape [n, len(names)], physical units.
        y: Predicted force magnitudes, shape [n]; ``y <= 0`` and non-finite values are dropped.
        groups: The sequence that each point comes from, shape [n], any dtype.
        names: The name of each column of ``X``.
        n_boot: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        ValueError: Shapes disagree, too few points are usable, or the inputs do not determine
            the exponents (a variable never varies, or two vary together).
    """
    X, y = points.check(X, y, names)
    groups = np.asarray(groups)
    if groups.shape != y.shape:
        raise ValueError(f"groups must have shape {y.shape} like y, got {groups.shape}")
    size = len(names) + 1
    keep, dropped = points.usable(X, y, at_least=size + 1)
    logs = np.log(X[keep])
    centre = logs.mean(axis=0)  # centred columns keep the normal equations well conditioned
    design = np.column_stack([np.ones(len(logs)), logs - centre])
    if np.linalg.matrix_rank(design, tol=1e-8 * len(design) ** 0.5) < size:
        raise ValueError(f"the points do not determine the exponents of {', '.join(names)}")
    gram, moment = _blocks(design, np.log(y[keep]), groups[keep])

    bounded = len(gram) >= MINIMUM_SEQUENCES
    n_boot = n_boot if bounded else 0
    best = np.linalg.solve(gram.sum(axis=0), moment.sum(axis=0))
    samples = np.concatenate([best[None], _resample(gram, moment, n_boot, seed)])
    constants = np.exp(samples[:, 0] - samples[:, 1:] @ centre)
    interval = _interval if bounded else _no_interval
    return Exponents(
        exponents={name: interval(samples[:, 1 + i]) for i, name in enumerate(names)},
        constant=interval(constants),
        n_sequences=len(gram),
        n_points=int(keep.sum()),
        dropped=dropped,
        n_boot=n_boot,
    )


def distance_exponents(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    groups: npt.ArrayLike,
    n_boot: int = 2000,
    seed: int = 0,
) -> dict[str, Interval | None]:
    """Split the exponent of the distance into that along an orbit and that between orbits.

    The fit over all points is a mixture of the two. Whoever reads a force off the motion by the
    law of another world has that law's exponent along each orbit, where the mass that was inferred
    is one number, and another one between orbits, where that number is wrong by a power of their
    size. A look-up table of that world's forces has its exponent along an orbit, too.

    Args:
        X: Inputs r, m1, m2, shape [n, 3].
        y: Predicted force magnitudes, shape [n]; ``y <= 0`` and non-finite values are dropped.
        groups: The sequence that each point comes from, shape [n].
        n_boot: Number of resamples of sequences.
        seed: Seed of the resampling.

    Returns:
        ``within``: the slope of ln y on ln r, each sequence with a level of its own (a fixed
        effect). ``between``: the exponent of r in a fit to the geometric means of the sequences.
        Each (value, low, high), or None where the points do not determine it.

    Raises:
        ValueError: Shapes disagree, or no point is usable.
    """
    X, y = points.check(X, y, NAMES)
    keep, _ = points.usable(X, y, at_least=1)
    _, index, counts = np.unique(np.asarray(groups)[keep], return_inverse=True, return_counts=True)
    logs = np.column_stack([np.log(X[keep]), np.log(y[keep])])
    means = np.zeros((len(counts), logs.shape[1]))
    np.add.at(means, index, logs)
    means /= counts[:, None]
    centred = logs - means[index]
    try:
        fitted = fit_exponents(
            np.exp(means[:, :-1]), np.exp(means[:, -1]), np.arange(len(means)), NAMES, n_boot, seed
        )
    except ValueError:  # too few sequences
        between = None
    else:
        between = fitted.exponents["r"]
    return {
        "within": _slope(centred[:, :1], centred[:, -1], index, n_boot, seed),
        "between": between,
    }


def _slope(
    design: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    groups: npt.NDArray[Any],
    n_boot: int,
    seed: int,
) -> Interval | None:
    """Return the slope of a line through the origin; None where its one variable never varies."""
    if np.ptp(design) < 1e-8:
        return None
    gram, moment = _blocks(design, values, groups)
    bounded = len(gram) >= MINIMUM_SEQUENCES
    best = moment.sum(axis=0) / gram.sum(axis=0)[0]
    samples = np.concatenate([best[None], _resample(gram, moment, n_boot * bounded, seed)])
    return (_interval if bounded else _no_interval)(samples[:, 0])


def prediction_metrics(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> dict[str, float | None]:
    """Compare predicted with true force magnitudes, point by point.

    Args:
        y_true: True magnitudes, shape [n], positive.
        y_pred: Predicted magnitudes, shape [n].

    Returns:
        ``r2`` and ``median_relative_error`` over finite predictions; ``r2_log`` and
        ``rms_log_error`` over positive ones; ``dropped``, the share without a logarithm. A
        measure without enough points is None.

    Raises:
        ValueError: The shapes differ, or a true magnitude is not positive.
    """
    true, predicted = np.asarray(y_true, np.float64), np.asarray(y_pred, np.float64)
    if true.ndim != 1 or true.shape != predicted.shape:
        raise ValueError(
            f"y_true {true.shape} and y_pred {predicted.shape} must have one shape [n]"
        )
    if not len(true) or not np.all(np.isfinite(true) & (true > 0)):
        raise ValueError("y_true must hold positive finite values")
    finite = np.isfinite(predicted)
    positive = finite & (predicted > 0)
    log_true, log_predicted = np.log(true[positive]), np.log(predicted[positive])
    relative = np.abs(predicted[finite] / true[finite] - 1)
    squares = (log_predicted - log_true) ** 2
    return {
        "r2_log": r2(log_true, log_predicted),
        "r2": r2(true[finite], predicted[finite]),
        "median_relative_error": float(np.median(relative)) if len(relative) else None,
        "rms_log_error": float(np.sqrt(squares.mean())) if len(squares) else None,
        "dropped": float(1 - positive.mean()),
    }


def r2(true: npt.NDArray[np.float64], predicted: npt.NDArray[np.float64]) -> float | None:
    """Return 1 - (residual / total sum of squares), or None where it is not defined."""
    if len(true) < 2 or np.ptp(true) == 0:  # a sum of squares would be rounding errors
        return None
    total = float(np.sum((true - true.mean()) ** 2))
    return 1 - float(np.sum((true - predicted) ** 2)) / total if total > 0 else None


def _blocks(
    design: npt.NDArray[np.float64], values: npt.NDArray[np.float64], groups: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return A'A [g, k, k] and A'b [g, k] of each of the g sequences."""
    _, first, index = np.unique(groups, return_index=True, return_inverse=True)
    gram = np.zeros((len(first), design.shape[1], design.shape[1]))
    moment = np.zeros((len(first), design.shape[1]))
    np.add.at(gram, index, design[:, :, None] * design[:, None, :])
    np.add.at(moment, index, design * values[:, None])
    return gram, moment


def _resample(
    gram: npt.NDArray[np.float64], moment: npt.NDArray[np.float64], n_boot: int, seed: int
) -> npt.NDArray[np.float64]:
    """Return the solutions of ``n_boot`` resamples of sequences, shape [n_boot, k]."""
    rng, (n, size, _) = np.random.default_rng(seed), gram.shape
    solutions = []
    for start in range(0, n_boot, _CHUNK):
        draws = min(_CHUNK, n_boot - start)
        counts = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)
        left = (counts @ gram.reshape(n, -1)).reshape(draws, size, size)
        right = counts @ moment
        # A resample of few sequences can be singular; the pseudo-inverse is then the
        # solution of least norm instead of an error.
        solutions.append((np.linalg.pinv(left, hermitian=True) @ right[..., None])[..., 0])
    return np.concatenate(solutions) if solutions else np.empty((0, size))


def _interval(samples: npt.NDArray[np.float64]) -> Interval:
    """Return the estimate (first entry) and the 2.5 and 97.5 percentiles of the resamples."""
    resampled = samples[1:] if len(samples) > 1 else samples
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(samples[0]), float(low), float(high)


def _no_interval(samples: npt.NDArray[np.float64]) -> Interval:
    return float(samples[0]), -math.inf, math.inf
