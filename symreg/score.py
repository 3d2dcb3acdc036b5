"""A formula against a law: does it describe the points, and is it the law that made them?

The verdict rests on local exponents, which any formula has; symbolic equality is reported beside
it. Thresholds are this benchmark's own choice and are stated in every result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from orbits import laws
from symreg import formula, points, symbolic
from symreg.exponents import Interval, fit_exponents, r2
from symreg.log_derivatives import log_derivatives
from symreg.points import NAMES

if TYPE_CHECKING:
    import sympy

Array = npt.NDArray[np.float64]

TOLERANCE = 0.05  # on each local exponent
SHARE_WITHIN = 0.95  # of the points must lie within the tolerance
SHARE_POSITIVE = 0.99  # of the points must have a finite, positive value
MINIMUM_R2_LOG = 0.9  # below, the formula does not describe the points and no law is claimed
SNAP_SPREAD = 0.01  # 5-95% spread of an exponent up to which it counts as one number
CONSTANT_RATIO = 1e-6  # relative spread of f / law up to which a symbolic comparison is worth it
VERDICTS = ("law", "law up to an offset", "another law", "no law found")


@dataclass(frozen=True)
class LawScore:
    """How a formula compares to a law.

    Attributes:
        expression: The formula.
        target: The law's name.
        verdict: One of ``VERDICTS``. A formula that does not describe the points is
            ``no law found``, not a wrong law.
        law: Local exponents agree with the law's, any additive constant kept.
        law_nooff: The same after dropping an additive constant.
        offset: That additive constant, solar mass AU / year^2.
        offset_share: Offset over the median of y.
        r2_log: R2 of ln f against ln y; None where it is not defined.
        median_relative_difference: Median of |f/y - 1|.
        exponents: For each variable the median, 5% and 95% of d ln|f| / d ln x; None where
            undefined.
        symbolic: Whether f over the law simplifies to a constant: yes, no or timeout.
        constant: Median of f over the law's shape (for Newton m1*m2/r**2), where the law's
            own constant is ``law.magnitude(1, 1, 1)``; None unless law or law_nooff.
        constant_relative_error: Of ``constant`` to the law's own.
        error_in_range: Median of |f/F - 1| with F the law, on the points.
        error_outside: The same outside: r from one to two times its largest value, masses
            below their median halved and the others doubled.
        complexity: Nodes of the expression tree.
        shape: The formula with its numbers as C.
        dropped: Share of points whose y has no logarithm.
        n_points: Number of points.
        thresholds: The thresholds behind the verdict.
    """

    expression: str
    target: str
    verdict: str
    law: bool
    law_nooff: bool
    offset: float
    offset_share: float
    r2_log: float | None
    median_relative_difference: float | None
    exponents: dict[str, Interval | None]
    symbolic: symbolic.Answer
    constant: float | None
    constant_relative_error: float | None
    error_in_range: float | None
    error_outside: float | None
    complexity: int
    shape: str
    dropped: float
    n_points: int
    thresholds: dict[str, float]

    def record(self) -> dict[str, Any]:
        """Return the score as plain JSON data."""
        return asdict(self)


def score(
    expression: str,
    law: str = "newton",
    *,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    names: Sequence[str] = NAMES,
) -> LawScore:
    """Compare a formula to a law of :mod:`orbits.laws`, on given points.

    Args:
        expression: The formula, in the grammar of :mod:`symreg.formula`.
        law: The law's name.
        X: Points, shape [n, len(names)], positive; AU and solar masses.
        y: The force magnitudes the formula is to describe, shape [n], for example a model's.
        names: The columns of ``X``: r, m1 and m2 in any order.

    Raises:
        ValueError: The formula is outside the grammar, there is no such law, shapes or names
            disagree, or a value of X is not positive.
    """
    X, y = points.check(X, y, names)
    if set(names) != set(NAMES):
        raise ValueError(f"names must be {', '.join(NAMES)}, got {', '.join(names)}")
    if not np.all(np.isfinite(X) & (X > 0)):
        raise ValueError("X must be positive and finite everywhere")
    target = laws.get(law)
    parsed = formula.parse(expression, names)
    keep, dropped = points.usable(X, y, at_least=2)

    judge = _Judge(target, tuple(names), X)
    values = judge.values(parsed)
    alpha = log_derivatives(lambda at: judge.values(parsed, at), X)
    follows = judge.follows(values, alpha)
    stripped, offset = symbolic.split_offset(parsed)
    follows_stripped = follows or (offset != 0 and judge.follows_expression(stripped))

    valid = keep & np.isfinite(values) & (values > 0)
    r2_log = r2(np.log(y[valid]), np.log(values[valid]))
    described = r2_log is not None and r2_log >= MINIMUM_R2_LOG and valid.mean() >= 0.5
    constant = judge.constant(parsed if follows else stripped) if follows_stripped else None
    true_constant = judge.true_constant
    return LawScore(
        expression=expression,
        target=law,
        verdict=_verdict(described, follows, follows_stripped),
        law=follows,
        law_nooff=follows_stripped,
        offset=offset,
        offset_share=offset / float(np.median(y[keep])),
        r2_log=r2_log,
        median_relative_difference=_median(np.abs(values[keep] / y[keep] - 1)),
        exponents={name: _spread(alpha[:, i]) for i, name in enumerate(names)},
        symbolic=judge.symbolic(parsed, alpha, y) if follows else "no",
        constant=constant,
        constant_relative_error=None if constant is None else abs(constant / true_constant - 1),
        error_in_range=judge.error(parsed, X),
        error_outside=judge.error(parsed, _outside(X, names)),
        complexity=symbolic.complexity(parsed),
        shape=symbolic.shape(parsed),
        dropped=dropped,
        n_points=len(y),
        thresholds={
            "tolerance": TOLERANCE,
            "share_within": SHARE_WITHIN,
            "share_positive": SHARE_POSITIVE,
            "minimum_r2_log": MINIMUM_R2_LOG,
        },
    )


@dataclass(frozen=True)
class _Judge:
    """One law on one set of points X [n, 3], with columns ``names``."""

    law: laws.Law
    names: tuple[str, ...]
    X: Array

    @property
    def true_constant(self) -> float:
        return float(self.law.magnitude(1.0, 1.0, 1.0))

    def force(self, X: Array) -> Array:
        return self.law.magnitude(**dict(zip(self.names, X.T, strict=True)))

    def values(self, expression: sympy.Expr, X: Array | None = None) -> Array:
        return formula.evaluate(expression, self.names, self.X if X is None else X)

    def law_exponents(self) -> Array:
        if self.law.exponents is not None:
            return np.array([self.law.exponents[name] for name in self.names])
        return log_derivatives(self.force, self.X)

    def follows(self, values: Array, alpha: Array) -> bool:
        valid = np.isfinite(values) & (values > 0)
        if valid.mean() < SHARE_POSITIVE:
            return False
        # An undefined exponent (nan) compares as false: it is not within the tolerance.
        within = np.all(np.abs(alpha - self.law_exponents()) <= TOLERANCE, axis=1)
        return bool(within[valid].mean() >= SHARE_WITHIN)

    def follows_expression(self, expression: sympy.Expr) -> bool:
        alpha = log_derivatives(lambda at: self.values(expression, at), self.X)
        return self.follows(self.values(expression), alpha)

    def constant(self, expression: sympy.Expr) -> float | None:
        return _median(self.values(expression) / self.force(self.X) * self.true_constant)

    def error(self, expression: sympy.Expr, X: Array) -> float | None:
        return _median(np.abs(self.values(expression, X) / self.force(X) - 1))

    def symbolic(self, expression: sympy.Expr, alpha: Array, y: Array) -> symbolic.Answer:
        """Compare exactly, after snapping exponents that the data cannot tell from a half."""
        expression = symbolic.snap_exponents(expression, self._intervals(alpha, y))
        ratio = self.values(expression) / self.force(self.X)
        # A ratio that varies is no constant: only the other case needs any algebra.
        if not np.ptp(ratio) <= CONSTANT_RATIO * abs(np.median(ratio)):
            return "no"
        reference = formula.parse(self.law.expression, (*self.names, *self.law.parameters))
        known = {s: self.law.parameters.get(s.name, s) for s in reference.free_symbols}
        return symbolic.is_constant(expression / reference.subs(known))

    def _intervals(self, alpha: Array, y: Array) -> dict[str, tuple[float, float]]:
        """Return the exponents' 95% intervals on y, for variables whose exponent is one number."""
        keep, _ = points.usable(self.X, y, at_least=2)
        blocks = np.arange(keep.sum()) % 1000  # bounds the bootstrap; points are taken as alike
        try:
            fit = fit_exponents(self.X[keep], y[keep], blocks, self.names, n_boot=500)
        except ValueError:
            return {}  # the points do not determine the exponents, so nothing may be snapped
        intervals = {}
        for i, name in enumerate(self.names):
            low, high = np.nanpercentile(alpha[:, i], [5, 95])
            if high - low <= SNAP_SPREAD:
                _, below, above = fit.exponents[name]
                intervals[name] = (below - 1e-6, above + 1e-6)  # room for rounding
        return intervals


def _verdict(described: bool, follows: bool, follows_stripped: bool) -> str:
    if not described:
        return "no law found"
    if follows:
        return "law"
    return "law up to an offset" if follows_stripped else "another law"


def _outside(X: Array, names: Sequence[str]) -> Array:
    columns = []
    for name, column in zip(names, X.T, strict=True):
        if name == "r":
            span = max(float(np.ptp(column)), np.finfo(float).tiny)
            columns.append(column.max() * (1 + (column - column.min()) / span))
        else:
            columns.append(column * np.where(column < np.median(column), 0.5, 2.0))
    return np.column_stack(columns)


def _spread(alpha: Array) -> Interval | None:
    finite = alpha[np.isfinite(alpha)]
    if not len(finite):
        return None
    median, low, high = np.percentile(finite, [50, 5, 95])
    return float(median), float(low), float(high)


def _median(values: Array) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None
