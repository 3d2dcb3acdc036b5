"""Verdict on a formula: whether it describes the points, and whether it is the law behind them.

The verdict rests on local exponents, which any formula has; symbolic equality is reported beside
it. Thresholds are this benchmark's own choice and are stated in every result.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import laws
from orbits.runs.statistics import MINIMUM_GROUPS, Interval
from symreg import points
from symreg.exponents import fit_exponents, r2
from symreg.formula import symbolic
from symreg.formula.evaluation import evaluate
from symreg.formula.law_score import LawScore
from symreg.formula.local_exponents import followed, law_exponents, log_derivatives, within
from symreg.formula.thresholds import (
    MINIMUM_R2_LOG,
    SCATTER,
    SHARE_DESCRIBED,
    SHARE_POSITIVE,
    SHARE_WITHIN,
    SNAP_SPREAD,
    THRESHOLDS,
)
from symreg.law_fit import law_fit
from symreg.points import NAMES

Array = npt.NDArray[np.float64]

LARGEST = 1e100  # of X, and its inverse the smallest: powers of it stay within float64


def score(
    expression: str,
    law: str = "newton",
    *,
    X: npt.ArrayLike | None = None,
    y: npt.ArrayLike | None = None,
    names: Sequence[str] = NAMES,
    groups: npt.ArrayLike | None = None,
) -> LawScore:
    """Compare a formula with a law of :mod:`orbits.laws`, on points and with forces there.

    The verdict is arithmetic on the points and always comes; computer algebra works in a child
    process with a limit on CPU time and memory, and says ``timeout`` where it ran out.

    Args:
        expression: The formula, in the grammar of :mod:`symreg.formula.grammar`.
        law: The law's name.
        X: Points, shape [n, len(names)], positive; AU and solar masses. Without any, those of
            :func:`symreg.points.reference`.
        y: The force magnitudes the formula is to describe, shape [n], for example a model's.
            Without any the formula alone is compared with the law, and nothing is rounded.
        names: The columns of ``X``: r, m1 and m2 in any order.
        groups: The sequence that each point comes from, shape [n]. An exponent of the formula is
            rounded only within the bootstrap interval over these; of fewer than
            ``statistics.MINIMUM_GROUPS`` there is none, and nothing is rounded. Without groups
            the points are taken as independent.

    Raises:
        ValueError: The formula is outside the grammar, there is no such law, shapes or names
            disagree, a value of X is not positive, fewer than two points are usable, or y has
            no X.
    """
    if X is None:
        if y is not None:
            raise ValueError("y needs X, the points where it was predicted")
        X = points.reference(names)
    alone = y is None  # then ones take its place, and all that is about y stays None
    X, y = points.check(X, np.ones(len(np.asarray(X))) if y is None else y, names)
    points.check_names(names)
    if not np.all((X >= 1 / LARGEST) & (X <= LARGEST)):
        limits = f"between {1 / LARGEST:g} and {LARGEST:g}"
        raise ValueError(f"X must be positive and finite everywhere, {limits}")
    # Blocks of independent points bound the cost of the bootstrap.
    groups = np.arange(len(y)) % 200 if groups is None else np.asarray(groups)
    if groups.shape != y.shape:
        raise ValueError(f"groups must have shape {y.shape} like y, got {groups.shape}")
    judge = _Judge(laws.get(law), tuple(names), X, groups)
    keep, dropped = points.usable(X, y, at_least=2)

    def f(at: Array) -> Array:
        return evaluate(expression, names, at)

    def f_stripped(at: Array) -> Array:
        return f(at) - (offset or 0.0)

    values, alpha = f(X), log_derivatives(f, X)
    exponents = {name: _spread(alpha[:, i]) for i, name in enumerate(names)}
    snappable = {} if alone else judge.snappable(exponents, y)
    structure = symbolic.structure(expression, judge.law, names, snappable)
    offset = _finite(structure.offset) if structure else None
    follows = judge.follows(values, alpha)
    law_nooff = follows or judge.follows(f_stripped(X), log_derivatives(f_stripped, X))
    opposite = not law_nooff and (
        judge.follows(-values, alpha)
        or judge.follows(-f_stripped(X), log_derivatives(f_stripped, X))
    )
    equal: symbolic.Answer = "timeout" if law_nooff else "no"
    if law_nooff and structure:
        equal = symbolic.proportional(expression, judge.law, names, snappable, X, follows)
    ratio = judge.ratio(values if follows else f_stripped(X)) if law_nooff else None

    valid = keep & np.isfinite(values) & (values > 0)
    varies = len(np.unique(y[valid])) > 1  # else rounding would stand in for the variance
    r2_log = r2(np.log(y[valid]), np.log(values[valid])) if varies else None
    near = r2_log is not None and r2_log >= MINIMUM_R2_LOG and valid.mean() >= SHARE_DESCRIBED
    described = alone or near
    positive = bool((np.isfinite(values) & (values > 0)).mean() >= SHARE_POSITIVE)
    outside = _outside(X, names)
    return LawScore(
        expression=expression,
        target=law,
        verdict=_verdict(described, follows, law_nooff),
        law=follows,
        law_nooff=law_nooff,
        laws=_followed(values, alpha, judge) if described and positive else (),
        offset=offset,
        offset_share=None if alone or offset is None else _finite(offset / np.median(y[keep])),
        r2_log=r2_log,
        median_relative_difference=None if alone else _difference(values[keep], y[keep]),
        exponents=exponents,
        symbolic=equal,
        dimensions=structure.dimensions if structure else "timeout",
        constant=None if ratio is None else _finite(ratio * judge.true_constant),
        constant_relative_error=None if ratio is None else _finite(abs(ratio - 1)),
        error_in_range=_difference(values, judge.force(X)),
        error_outside=_difference(f(outside), judge.force(outside)),
        complexity=structure.complexity if structure else None,
        shape=structure.shape if structure else "timeout",
        dropped=dropped,
        n_points=len(y),
        thresholds=dict(THRESHOLDS),
        opposite=opposite,
        predictions=None if alone else law_fit(X, y, law, names),
    )


@dataclass(frozen=True)
class _Judge:
    """One law on one set of points X [n, 3], with columns ``names``, in ``groups`` [n]."""

    law: laws.Law
    names: tuple[str, ...]
    X: Array
    groups: npt.NDArray[Any]

    @property
    def true_constant(self) -> float:
        return float(self.law.magnitude(1.0, 1.0, 1.0))

    def force(self, X: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.law.magnitude(**dict(zip(self.names, X.T, strict=True)))

    def follows(self, values: Array, alpha: Array) -> bool:
        valid = np.isfinite(values) & (values > 0)
        close = within(alpha, law_exponents(self.law, self.X, self.names))
        enough = valid.mean() >= SHARE_POSITIVE and (valid & close).mean() >= SHARE_WITHIN
        there = valid & close
        return bool(enough and self._is_near(self.X[there], values[there]))

    def _is_near(self, X: Array, values: Array) -> bool:
        """Tell whether values over the law's are one power law, as right exponents make them.

        A formula that jumps between two points, or turns within the step of a difference, has the
        law's exponents at every point, and its values scatter about it.
        """
        with np.errstate(all="ignore"):
            logs = np.log(values / self.force(X))
        finite = np.isfinite(logs)
        design = np.column_stack([np.ones(finite.sum()), np.log(X[finite])])
        left = logs[finite] - design @ np.linalg.lstsq(design, logs[finite])[0]
        return bool(np.std(left) <= SCATTER)

    def ratio(self, values: Array) -> float | None:
        """Return the median of values over the law's force."""
        with np.errstate(all="ignore"):
            return _median(values / self.force(self.X))

    def snappable(
        self, exponents: Mapping[str, Interval | None], y: Array
    ) -> dict[str, tuple[float, float]]:
        """Return the exponents' 95% intervals on y, for variables whose exponent is one number."""
        try:
            fit = fit_exponents(self.X, y, self.groups, self.names, n_boot=500)
        except ValueError:
            return {}  # the points do not determine the exponents, so nothing may be snapped
        if fit.n_sequences < MINIMUM_GROUPS:
            return {}
        intervals = {}
        for name, spread in exponents.items():
            if spread and spread[2] - spread[1] <= SNAP_SPREAD:
                _, low, high = fit.exponents[name]
                intervals[name] = (low - 1e-6, high + 1e-6)  # room for rounding
        return intervals


def _followed(values: Array, alpha: Array, judge: _Judge) -> tuple[str, ...]:
    """Return the laws that values with exponents ``alpha`` follow, as the judge's own is judged."""
    matched = followed(alpha, judge.X, judge.names, [judge.law.name])
    others = (dataclasses.replace(judge, law=laws.get(name)) for name in matched)
    return tuple(each.law.name for each in others if each.follows(values, alpha))


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
    return Interval(float(median), float(low), float(high))


def _difference(values: Array, truth: Array) -> float | None:
    """Return the median of |values / truth - 1|, both [n]; None where that is not finite.

    A value that is not finite is infinitely far off: leaving it out would reward it.
    """
    with np.errstate(all="ignore"):
        errors = np.abs(values / truth - 1)
    return _finite(float(np.median(np.where(np.isfinite(errors), errors, math.inf))))


def _median(values: Array) -> float | None:
    finite = values[np.isfinite(values)]
    return _finite(float(np.median(finite))) if len(finite) else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
