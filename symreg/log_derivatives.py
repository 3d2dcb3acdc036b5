"""Local exponents of any function: d ln|f| / d ln x at every point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

STEP = 1e-4  # in ln x: central differences are then good to about 1e-8 in float64


def log_derivatives(
    function: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    X: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return d ln|f| / d ln x by central differences.

    Args:
        function: Takes points [n, d] and returns values [n].
        X: Positive points, shape [n, d].

    Returns:
        Local exponents, shape [n, d]; nan where the function is zero or not finite.
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
