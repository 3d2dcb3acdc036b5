"""Points of a fit or a score: their shape, the names of their columns, and the usable ones."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from symreg.formula.grammar import FUNCTIONS

NAMES = ("r", "m1", "m2")
BOX = {"r": (0.1, 100.0), "m1": (1e-6, 1.0), "m2": (0.1, 10.0)}
"""Ranges in AU and solar masses: planets to stars, and far enough to tell screened forces apart."""


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
        is_word = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
        if not is_word or name in FUNCTIONS:
            raise ValueError(f"{name!r} cannot name a variable of a formula")
    if len(set(names)) != len(names):
        raise ValueError(f"names repeat: {', '.join(names)}")
    return X, y


def check_names(names: Sequence[str]) -> None:
    """Refuse columns that are not those of a force law, with a ValueError."""
    if set(names) != set(NAMES):
        raise ValueError(f"names must be {', '.join(NAMES)}, got {', '.join(names)}")


def reference(names: Sequence[str] = NAMES, n: int = 10) -> npt.NDArray[np.float64]:
    """Return points for a formula without data: a grid of ``n`` values a variable over ``BOX``.

    Shape [n**3, 3], evenly spaced in the logarithm, in the order of ``names``.
    """
    check_names(names)
    axes = [np.geomspace(*BOX[name], n) for name in names]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


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
