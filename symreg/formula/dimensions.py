"""Dimensional consistency of a formula: whether it could be a force, whatever its numbers.

The distance is a length and both masses are masses; every number is dimensionless, except one
factor in front of everything, which carries the dimensions of the law's constant. So the product
without that factor must have the dimensions of the law without its own: for Newton's law
mass^2 / length^2.
"""

from __future__ import annotations

from typing import Any, Literal

import sympy

Answer = Literal["yes", "no", "not defined"]
Vector = tuple[float, float]  # exponents of length and mass

SYMBOLS: dict[str, Vector] = {"r": (1.0, 0.0), "m1": (0.0, 1.0), "m2": (0.0, 1.0)}
NUMBER: Vector = (0.0, 0.0)
ROUNDING = 1e-9  # of sums of exponents such as 0.7 + 0.3; no allowance for fitted exponents


def consistent(expression: sympy.Expr, law: sympy.Expr) -> Answer:
    """Tell whether a formula has the dimensions of a law, both in positive symbols r, m1 and m2.

    Exponents must match exactly, so fitted ones are to be snapped first
    (:func:`symreg.formula.symbolic.snap_exponents`): m1**0.9998 is not a mass. ``not defined`` is
    the answer where the law has a dimensional constant beside its prefactor, such as the length of
    a screened force: then any number may carry dimensions, and no sum can be checked.
    """
    truth = dimensions(law)
    if truth is None:
        return "not defined"
    exponents = dimensions(expression)
    return "yes" if exponents is not None and _equal(exponents, truth) else "no"


def dimensions(expression: sympy.Expr) -> Vector | None:
    """Return the exponents of length and mass, or None where the formula is inconsistent."""
    if expression.is_number:
        return NUMBER
    if expression.is_Symbol:
        return SYMBOLS[expression.name]
    if expression.is_Pow:
        return _power(expression.base, expression.exp)
    parts = [dimensions(part) for part in expression.args]
    vectors = [part for part in parts if part is not None]
    if len(vectors) < len(parts):
        return None
    if expression.is_Mul:
        return sum(part[0] for part in vectors), sum(part[1] for part in vectors)
    if expression.is_Add:
        return vectors[0] if all(_equal(part, vectors[0]) for part in vectors) else None
    if expression.func.__name__ == "Abs":
        return vectors[0]
    return NUMBER if all(_equal(part, NUMBER) for part in vectors) else None


def _power(base: Any, exponent: Any) -> Vector | None:
    below = dimensions(base)
    if below is None:
        return None
    if exponent.is_number:
        return below[0] * float(exponent), below[1] * float(exponent)
    above = dimensions(exponent)
    pure = above is not None and _equal(above, NUMBER) and _equal(below, NUMBER)
    return NUMBER if pure else None


def _equal(one: Vector, other: Vector) -> bool:
    return all(abs(a - b) <= ROUNDING for a, b in zip(one, other, strict=True))
