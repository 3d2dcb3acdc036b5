"""Tukey's bisquare, for fits that a few wild points must not decide (Beaton & Tukey 1974)."""

from __future__ import annotations

import numpy as np

from orbits.arithmetic import Array

CUT = 4.685
"""Cut-off in scales: residuals beyond it count alike; 95% efficient for normal errors."""
TO_NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
TINY = 1e-12
"""Least scale; that of bodies that never move would be 0."""


def loss(residual: Array) -> Array:
    """Return the loss of residuals in units of their scale: 0 at 0, 1 beyond the cut."""
    return 1 - (1 - np.minimum(np.abs(residual) / CUT, 1) ** 2) ** 3


def weight(residual: Array) -> Array:
    """Return the weights by which least squares minimises the loss, 1 at 0."""
    return (1 - np.minimum(np.abs(residual) / CUT, 1) ** 2) ** 2


def curvature(residual: Array) -> Array:
    """Return the second derivative of the loss, 1 at 0; negative in the tails."""
    square = np.minimum(np.abs(residual) / CUT, 1) ** 2
    return (1 - square) * (1 - 5 * square)


def scale(residual: Array, typical: float, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return the scale of residuals by their median size.

    Args:
        residual: Residuals about zero.
        typical: Size of what was fitted; a scale below a hundredth of it is that hundredth, so
            that data without errors have one.
        axis: Axis, as in numpy.
    """
    least = max(0.01 * typical, TINY)
    return np.maximum(TO_NORMAL * np.median(np.abs(residual), axis=axis), least)
