"""Formulas for ln y in scaled inputs, turned into formulas for y in physical units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from symreg.formula.parsing import parse

# Engines compute in single precision, so an exponent this close to a half-integer is that one.
EXPONENT_RESOLUTION = 1e-6


def of_logarithm(text: str, scales: Mapping[str, float]) -> sympy.Expr:
    """Return exp of a formula whose variables are inputs over their ``scales``."""
    symbols = {name: sympy.Symbol(name, positive=True) for name in scales}
    scaled = {symbols[name]: symbols[name] / float(scale) for name, scale in scales.items()}
    return exponential(parse(text, tuple(scales)).xreplace(scaled))


def exponential(logarithm: sympy.Expr) -> sympy.Expr:
    """Return exp(logarithm), with every ``a*log(u)`` in it written as ``u**a``.

    Only numbers are multiplied out, so the result is never much larger than the input. Powers of
    a u that may be negative are kept whole: they equal the original wherever that was real.
    """
    result: Any = sympy.Integer(1)
    rest: Any = sympy.Integer(0)
    for coefficient, base in _terms(logarithm, sympy.Integer(1)):
        if isinstance(base, sympy.log):
            for factor in _factors(base.args[0]):
                base_, power = factor.as_base_exp()
                if factor.is_number:
                    result *= sympy.Float(factor) ** coefficient
                elif base_.is_number:  # log(exp(u)) = u
                    rest += coefficient * power * sympy.log(base_)
                else:
                    result *= base_ ** _tidy(power * coefficient)
        else:
            rest += coefficient * base
    constant, variable = rest.as_independent(*rest.free_symbols, as_Add=True)
    return sympy.exp(sympy.Float(constant)) * result * sympy.exp(variable)


def _terms(expression: Any, scale: Any) -> list[tuple[Any, Any]]:
    """Write an expression as a sum of (number, term), multiplying only numbers into sums."""
    coefficient, rest = expression.as_coeff_Mul()
    if isinstance(rest, sympy.Add):
        return [term for part in rest.args for term in _terms(part, scale * coefficient)]
    return [(scale * coefficient, rest)]


def _factors(product: Any) -> list[Any]:
    """Split a positive product: each factor known to be positive, then the others as one."""
    factors = sympy.Mul.make_args(product)
    positive = [factor for factor in factors if factor.is_positive]
    others = sympy.Mul(*[factor for factor in factors if not factor.is_positive])
    return positive if others == 1 else [*positive, others]


def _tidy(exponent: Any) -> Any:
    if not exponent.is_number:
        return exponent
    nearest = sympy.Rational(round(2 * float(exponent)), 2)
    close = abs(float(exponent) - float(nearest)) <= EXPONENT_RESOLUTION
    return nearest if close else exponent
