"""Local exponents d ln|f| / d ln x, and the laws whose exponents they match on given points.

A verdict is only as sharp as its points. Within a few AU a screened force with a length of 20 AU
is Newton's to within the tolerance, and a row has to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from orbits import laws
from orbits.laws import Law
from symreg.formula.thresholds import SHARE_WITHIN, TOLERANCE
from symreg.points import NAMES

Array = npt.NDArray[np.float64]
STEP = 1e-4  # in ln x: central differences are then good to about 1e-8 in float64


def log_derivatives(function: Callable[[Array], Array], X: Array) -> Array:
    """Return d ln|f| / d ln x [n, d] at positive points X [n, d] by central differences.

    It is nan where the function is zero or not finite.
    """
    columns = []
    for column in range(X.shape[1]):
        shift = np.ones(X.shape[1])
        shift[column] = np.exp(STEP)
        with np.errstate(all="ignore"):
            rise = np.log(np.abs(function(X * shift))) - np.log(np.abs(function(X / shift)))
            slope = rise / (2 * STEP)
        columns.append(np.where(np.isfinite(slope), slope, np.nan))
    return np.column_stack(columns)


def law_exponents(law: Law, X: Array, names: Sequence[str] = NAMES) -> Array:
    """Return the local exponents of a law's magnitude at points X [n, 3], shape [n, 3]."""
    if law.exponents is not None:
        return np.tile([law.exponents[name] for name in names], (len(X), 1))
    return log_derivatives(lambda at: law.magnitude(**dict(zip(names, at.T, strict=True))), X)


def alike(law: str, X: npt.ArrayLike, names: Sequence[str] = NAMES) -> tuple[str, ...]:
    """Return the other laws that a verdict cannot tell from ``law`` at positive points X [n, 3]."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(NAMES) or not len(X):
        raise ValueError(f"X must have shape [n, {len(NAMES)}] with n > 0, got {X.shape}")
    truth = law_exponents(laws.get(law), X, names)
    return tuple(name for name in followed(truth, X, names) if name != law)


def followed(
    alpha: Array, X: Array, names: Sequence[str] = NAMES, also: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the laws that local exponents [n, 3] match on enough of the points X.

    Asked are the laws that have a file, and those in ``also``.
    """
    return tuple(
        name
        for name in dict.fromkeys((*laws.names(), *also))
        if within(alpha, law_exponents(laws.get(name), X, names)).mean() >= SHARE_WITHIN
    )


def within(alpha: Array, truth: Array) -> npt.NDArray[np.bool_]:
    """Tell for each point [n] whether all exponents [n, d] are within tolerance; nan is not."""
    return np.all(np.abs(alpha - truth) <= TOLERANCE, axis=1)
