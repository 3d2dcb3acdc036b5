"""Exact comparison of formulas: constant-free shape, size, offset, and equality up to a constant.

All of it is computer algebra on a formula that may come from anywhere, so :func:`structure` and
:func:`proportional` work in a child with a limit on time and memory, and a timeout is an answer
of its own: it is not a no.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import sympy

from orbits import laws
from orbits.laws import Law
from symreg.formula import bounded, dimensions
from symreg.formula.evaluation import evaluate
from symreg.formula.parsing import build
from symreg.formula.thresholds import CONSTANT_RATIO

LEVEL = 1e-10
"""Spread of a ratio, over its median, that is rounding."""
MOST_FACTORS = 4
"""Most factors of a sum that are multiplied out in the search for an offset."""
WIDE = 2.0
"""Points are drawn from e^-2 to e^2 AU and solar masses."""
Answer = Literal["yes", "no", "timeout"]
Snappable = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Structure:
    """Parts and size of a formula.

    Attributes:
        offset: The additive constant.
        complexity: Nodes of the expression tree after snapping exponents (SRBench's measure).
        shape: The formula with its numbers as C.
        dimensions: Whether it has the dimensions of the law, after snapping exponents.
    """

    offset: float
    complexity: int
    shape: str
    dimensions: dimensions.Answer


def structure(text: str, law: Law, names: Sequence[str], snappable: Snappable) -> Structure | None:
    """Return the parts and the size of a formula; None if time or memory ran out."""

    def work() -> Structure:
        parsed = build(text, names)
        snapped = snap_exponents(parsed, snappable)
        return Structure(
            offset=split_offset(parsed)[1],
            complexity=sum(1 for _ in sympy.preorder_traversal(snapped)),
            shape=shape(parsed),
            dimensions=dimensions.consistent(snapped, of_law(law)),
        )

    try:
        return bounded.call(work)
    except bounded.OutOfLimits:
        return None


def proportional(
    text: str,
    law: Law,
    names: Sequence[str],
    snappable: Snappable,
    X: npt.NDArray[np.float64],
    keep_offset: bool,
) -> Answer:
    """Tell whether a formula is the law times a constant, once its exponents are snapped.

    A ratio of the two that varies on the points X [n, len(names)] is not constant, which spares the
    algebra. ``keep_offset`` tells whether an additive constant of the formula stays.
    """
    force = law.magnitude(**dict(zip(names, X.T, strict=True)))

    def work() -> Answer:
        parsed = build(text, names)
        formula = parsed if keep_offset else split_offset(parsed)[0]
        snapped = snap_exponents(formula, snappable)
        with np.errstate(all="ignore"), contextlib.suppress(ValueError):  # prints too long
            ratio = evaluate(snapped, names, X) / force
            if not np.ptp(ratio) <= CONSTANT_RATIO * abs(np.median(ratio)):
                return "no"
        answer = is_constant(snapped / of_law(law))
        # Algebra does not cancel sums of decimal numbers: 41 m1 (r + 20.0) and 41 m1 (1 + r/20.0).
        return "yes" if answer == "no" and _is_level(snapped, law, names) else answer

    try:
        return bounded.call(work)
    except bounded.OutOfLimits:
        return "timeout"


def _is_level(formula: sympy.Expr, law: Law, names: Sequence[str]) -> bool:
    """Tell whether a formula over a law is one number at random points, to ten digits."""
    X = np.exp(np.random.default_rng(0).uniform(-WIDE, WIDE, (64, len(names))))
    with np.errstate(all="ignore"):
        ratio = evaluate(formula, names, X) / law.magnitude(**dict(zip(names, X.T, strict=True)))
    ratio = ratio[np.isfinite(ratio)]
    return len(ratio) >= 32 and bool(np.ptp(ratio) <= LEVEL * abs(np.median(ratio)))


def of_law(law: Law) -> sympy.Expr:
    """Return a law's expression with numbers for its constants."""
    parsed, symbols = laws.symbolic(law.expression, law.parameters, law.not_positive)
    return parsed.subs({each: law.parameters.get(each.name, each) for each in symbols})


def is_constant(expression: sympy.Expr) -> Answer:
    """Tell whether an expression simplifies to one without variables.

    No limit applies here; ``timeout`` is the answer where sympy gives up with an error.
    """
    failed = False
    for step in (sympy.cancel, sympy.powsimp, sympy.simplify):
        if not expression.free_symbols:
            return "yes"
        try:
            expression = step(expression)
        except (MemoryError, RecursionError):
            raise
        except Exception:  # sympy's own defects are of every class and decide nothing
            failed = True
    if not expression.free_symbols:
        return "yes"
    return "timeout" if failed else "no"


def split_offset(expression: sympy.Expr) -> tuple[sympy.Expr, float]:
    """Split ``f = g + offset`` into g and the constant, which a product or quotient may hide."""
    body, offset = _split(expression)
    if offset or any(map(_is_wide, expression.atoms(sympy.Pow))):
        return body, offset
    return _split(sympy.expand(expression))


def _is_wide(power: sympy.Pow) -> bool:
    """Tell whether a power of a sum would expand to very many terms."""
    return bool(power.base.is_Add and power.exp.is_Integer and abs(power.exp) > MOST_FACTORS)


def _split(expression: sympy.Expr) -> tuple[sympy.Expr, float]:
    coefficient, body = expression.as_coeff_Mul()
    if not body.free_symbols:
        return expression * 0, _real(expression)
    constant, variable = body.as_independent(*body.free_symbols, as_Add=True)
    return coefficient * variable, _real(coefficient * constant)


def _real(constant: sympy.Expr) -> float:
    try:
        return float(constant)
    except TypeError:  # an expansion splits logarithms, and may leave i pi
        raise ValueError(f"not a finite real formula: it holds {constant}") from None


def snap_exponents(expression: sympy.Expr, allowed: Snappable) -> sympy.Expr:
    """Round the exponents of variables to the nearest half-integer where that is allowed.

    ``allowed`` has the interval (low, high) of a variable's exponent on the data. Both the exponent
    and the half-integer must lie inside: only then can the data not tell one from the other.
    """

    def snap(power: Any) -> Any:
        base, exponent = power.args
        if base.name not in allowed or not exponent.is_number:
            return power
        nearest = sympy.Rational(round(2 * float(exponent)), 2)
        low, high = allowed[base.name]
        inside = low <= float(nearest) <= high and low <= float(exponent) <= high
        return base**nearest if inside else power

    return expression.replace(lambda part: part.is_Pow and part.base.is_Symbol, snap)


def shape(expression: sympy.Expr) -> str:
    """Return the formula with every number as C and exponents rounded, for counting alike ones.

    Exponents within 0.05 of a half-integer become it; others keep one decimal.
    """
    return str(_shape(expression))


def _shape(expression: Any) -> Any:
    constant = sympy.Symbol("C", positive=True)
    if expression.is_number:
        return constant
    if expression.is_Pow and expression.exp.is_number:
        value = float(expression.exp)
        half = round(2 * value) / 2
        rounded = half if abs(value - half) <= 0.05 else round(value, 1)
        return _shape(expression.base) ** sympy.nsimplify(rounded, rational=True)
    if expression.is_Mul:
        # A sign is part of the constant.
        number, body = expression.as_coeff_Mul()
        factors = [_shape(factor) for factor in sympy.Mul.make_args(body)]
        return sympy.Mul(*factors) if number == 1 else constant * sympy.Mul(*factors)
    if expression.args:
        return expression.func(*map(_shape, expression.args))
    return expression
