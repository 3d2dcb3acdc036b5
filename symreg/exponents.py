"""Exponents of the predicted force, fitted to predictions without any formula.

``ln y = ln c + sum_x alpha_x ln x``, by :func:`orbits.runs.statistics.power_law`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits.runs import statistics
from orbits.runs.statistics import Interval
from symreg import points
from symreg.points import NAMES


@dataclass(frozen=True)
class Exponents:
    """A power law fitted to predictions.

    Fewer than ``statistics.MINIMUM_GROUPS`` sequences bound nothing: their ends are infinite.

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
    keep, dropped = points.usable(X, y, at_least=len(names) + 2)
    try:
        fitted = statistics.power_law(X[keep], y[keep], groups[keep], n_boot, seed)
    except ValueError as error:
        raise ValueError(f"{error} of {', '.join(names)}") from None
    return Exponents(
        exponents=dict(zip(names, fitted.exponents, strict=True)),
        constant=fitted.constant,
        n_sequences=fitted.n_groups,
        n_points=int(keep.sum()),
        dropped=dropped,
        n_boot=fitted.n_boot,
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
    law of another world has that law's exponent along each orbit, where the inferred mass is one
    number, and another one between orbits, where that number is wrong by a power of their size. A
    look-up table of that world's forces has its exponent along an orbit, too.

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
    """
    X, y = points.check(X, y, NAMES)
    keep, _ = points.usable(X, y, at_least=1)
    _, index, counts = np.unique(np.asarray(groups)[keep], return_inverse=True, return_counts=True)
    logs = np.column_stack([np.log(X[keep]), np.log(y[keep])])
    means = np.zeros((len(counts), logs.shape[1]))
    np.add.at(means, index, logs)
    means = np.exp(means / counts[:, None])
    try:
        fitted = fit_exponents(
            means[:, :-1], means[:, -1], np.arange(len(means)), NAMES, n_boot, seed
        )
    except ValueError:  # too few sequences
        between = None
    else:
        between = fitted.exponents["r"]
    within = statistics.within_slope(logs[:, 0], logs[:, -1], index, n_boot, seed)
    return {"within": within, "between": between}


def prediction_metrics(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> dict[str, float | None]:
    """Compare predicted with true force magnitudes [n]; a measure without enough points is None.

    ``r2`` and ``median_relative_error`` are over finite predictions, ``r2_log`` and
    ``rms_log_error`` over positive ones; ``dropped`` is the share without a logarithm.
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
