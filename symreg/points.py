"""Points of a fit or a score: their shape, the names of their columns, and the usable ones."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

NAMES = ("r", "m1", "m2")


def check(
    X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str] = NAMES
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return ``X`` [n, d] and ``y`` [n] as float64, or a ValueError before any work is done."""
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
    """Tell which points have a logarithm, and the share of those without: a mask [n] and a number.

    A logarithm needs a finite, positive value in ``y`` [n] and in every column of ``X`` [n, d]. A
    ValueError tells that fewer than ``at_least`` points have one.
    """
    keep = np.isfinite(y) & (y > 0) & np.all(np.isfinite(X) & (X > 0), axis=1)
    if keep.sum() < at_least:
        raise ValueError(
            f"only {keep.sum()} of {len(y)} points are positive and finite; need {at_least}"
        )
    return keep, float(1 - keep.mean())
