"""The points that a fit or a score is given: their shape, their names, and which are usable."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

NAMES = ("r", "m1", "m2")


def check(
    X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str] = NAMES
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return ``X`` [n, d] and ``y`` [n] as float64, or refuse them before any work is done.

    Raises:
        ValueError: The shapes or names do not fit together, or there is no point.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ValueError(f"X must have shape [n, {len(names)}] ({', '.join(names)}), got {X.shape}")
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must have shape [{X.shape[0]}] like the rows of X, got {y.shape}")
    if not len(y):
        raise ValueError("X and y hold no points")
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{name!r} cannot name a variable")
    if len(set(names)) != len(names):
        raise ValueError(f"names repeat: {', '.join(names)}")
    return X, y


def usable(
    X: npt.NDArray[np.float64], y: npt.NDArray[np.float64], at_least: int
) -> tuple[npt.NDArray[np.bool_], float]:
    """Tell which points have a logarithm: finite, and positive in ``y`` and in every column.

    Args:
        X: Inputs, shape [n, d].
        y: Values, shape [n].
        at_least: The smallest number of points that the caller can work with.

    Returns:
        A mask of shape [n] and the share of points that it drops.

    Raises:
        ValueError: Fewer than ``at_least`` points remain.
    """
    keep = np.isfinite(y) & (y > 0) & np.all(np.isfinite(X) & (X > 0), axis=1)
    if keep.sum() < at_least:
        raise ValueError(
            f"only {keep.sum()} of {len(y)} points are positive and finite; need {at_least}"
        )
    return keep, float(1 - keep.mean())
