"""When two laws look alike: their local exponents agree on the points at hand.

A verdict is only as sharp as its points. Within a few AU a screened force with a length of 20 AU
is Newton's to within the tolerance, and a row has to say so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from orbits import laws
from symreg.log_derivatives import law_exponents
from symreg.points import NAMES

TOLERANCE = 0.05  # on each local exponent
SHARE_WITHIN = 0.95  # of the points must lie within the tolerance


def alike(law: str, X: npt.ArrayLike, names: Sequence[str] = NAMES) -> tuple[str, ...]:
    """Return the names of the other laws that the verdict cannot tell from ``law``.

    Args:
        law: A name of :func:`orbits.laws.names`.
        X: Positive points, shape [n, 3]; AU and solar masses.
        names: The columns of ``X``: r, m1 and m2 in any order.

    Raises:
        ValueError: There is no such law, ``X`` has another shape, or a value is not positive.
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(NAMES) or not len(X):
        raise ValueError(f"X must have shape [n, {len(NAMES)}] with n > 0, got {X.shape}")
    truth = law_exponents(laws.get(law), X, names)
    return tuple(name for name in followed(truth, X, names) if name != law)


def followed(
    alpha: npt.NDArray[np.float64], X: npt.NDArray[np.float64], names: Sequence[str] = NAMES
) -> tuple[str, ...]:
    """Return the laws of the registry that local exponents agree with, on enough of the points.

    Args:
        alpha: Local exponents of a formula at the points, [n, 3].
        X: The points, [n, 3].
        names: The columns of both.
    """
    return tuple(
        name
        for name in laws.names()
        if within(alpha, law_exponents(laws.get(name), X, names)).mean() >= SHARE_WITHIN
    )


def within(alpha: npt.NDArray[np.float64], truth: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Tell for each point [n] whether all exponents [n, d] lie within the tolerance.

    An undefined exponent (nan) is not within it.
    """
    return np.all(np.abs(alpha - truth) <= TOLERANCE, axis=1)
