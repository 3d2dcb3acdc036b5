"""Targets of a search, and formulas for them turned back into physical units.

Force noise is multiplicative, so a squared error on y is ruled by the few closest encounters, where
an additive constant costs nothing. On ln y every point counts alike, and dividing by geometric
means makes the constants of order one. :class:`RawTarget`, y as it is, is the published target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symreg import points
from symreg.formula.evaluation import evaluate

MINIMUM_POINTS = 20
# Values this close, relatively, differ by rounding errors of float64 only.
ROUNDING = 1e-12


@dataclass(frozen=True)
class LogTarget:
    """ln y in dimensionless variables: the usable points of a search and their scales.

    Attributes:
        names: The name of each input.
        X: Usable inputs in physical units, shape [k, d].
        y: Usable values, positive, shape [k].
        X_scale: Geometric mean of each input, shape [d].
        y_scale: Geometric mean of y.
        dropped: Share of points that have no logarithm.
    """

    names: tuple[str, ...]
    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    X_scale: npt.NDArray[np.float64]
    y_scale: float
    dropped: float

    @classmethod
    def of(cls, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str]) -> LogTarget:
        """Check the points, drop those without a logarithm and measure the scales."""
        X, y = points.check(X, y, names)
        keep, dropped = points.usable(X, y, MINIMUM_POINTS)
        X, y = X[keep], y[keep]
        X_scale, y_scale = np.exp(np.log(X).mean(axis=0)), float(np.exp(np.log(y).mean()))
        return cls(tuple(names), X, y, X_scale, y_scale, dropped)

    @property
    def inputs(self) -> npt.NDArray[np.float64]:
        """Inputs of the search: X over its geometric means, shape [k, d]."""
        return self.X / self.X_scale

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """Values that the search fits: ln(y / geometric mean of y), shape [k]."""
        return np.log(self.y / self.y_scale)

    @property
    def constant(self) -> str | None:
        """The formula for a y that does not vary; None for one that does."""
        return None if varies(self.y) else self.physical("0")

    def physical(self, text: str) -> str:
        """Turn a formula for ln(y / y_scale) in scaled inputs into one for y in physical units.

        A power law comes out as ``c*m1*m2/r**2``. Last, the constant is refitted: the formula is
        multiplied by the median of y / formula, because least squares on ln y puts the constant
        at exp(E[ln y]), which noise biases (2 % low at 20 % noise). The median does not move.

        Raises:
            ValueError: The formula is not positive on the points; or, written with powers in place
                of logarithms, outside the grammar: its exponents may have become too large.
        """
        # sympy, which a list of the engines does without
        from symreg.formula import parsing
        from symreg.search import units

        expression = units.of_logarithm(text, dict(zip(self.names, self.X_scale, strict=True)))
        with np.errstate(all="ignore"):
            ratio = self.y / evaluate(expression, self.names, self.X)
        ratio = ratio[np.isfinite(ratio) & (ratio > 0)]
        if not len(ratio):
            raise ValueError(f"not positive anywhere on the points: {text}")
        physical = str(expression * float(np.median(ratio)))
        parsing.parse(physical, self.names)
        return physical


@dataclass(frozen=True)
class RawTarget:
    """Points as they are, in physical units; attributes as of :class:`LogTarget`."""

    names: tuple[str, ...]
    inputs: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    dropped: float

    @classmethod
    def of(cls, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str]) -> RawTarget:
        """Check the points and drop those that are not finite."""
        X, y = points.check(X, y, names)
        keep = np.isfinite(y) & np.all(np.isfinite(X), axis=1)
        if keep.sum() < MINIMUM_POINTS:
            raise ValueError(f"only {keep.sum()} of {len(y)} points are finite")
        return cls(tuple(names), X[keep], y[keep], float(1 - keep.mean()))

    @property
    def constant(self) -> str | None:
        """The formula for a y that does not vary; None for one that does."""
        return None if varies(self.values) else repr(float(np.median(self.values)))

    def physical(self, text: str) -> str:
        """Return the formula in the form that :mod:`symreg.formula.grammar` gives it."""
        from symreg.formula import parsing  # sympy, which a list of the engines does without

        return str(parsing.parse(text, self.names))


def varies(y: npt.NDArray[np.float64]) -> bool:
    """Tell whether finite values differ by more than rounding errors."""
    return bool(np.ptp(y) > ROUNDING * np.abs(y).max())


Target = LogTarget | RawTarget
TARGETS: dict[str, type[Target]] = {"log": LogTarget, "raw": RawTarget}
"""Targets by their names in an engine's settings."""
