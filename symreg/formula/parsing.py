"""Sympy expressions of formula strings.

An expression simplifies itself while it is built and can do so without end: exponents are bounded,
numbers rounded, and a large formula is first tried in a child process.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from symreg.formula import bounded, grammar
from symreg.points import NAMES

# The product of all exponents from the root to a leaf: bounds ((r**9)**9)**9 as well as r**729.
MAX_POWER = 200.0
MAX_EXACT = 10**15  # numerators and denominators beyond are rounded to float64
SMALL = 60  # nodes of the syntax tree up to which sympy was always quick


def parse(text: str, names: Sequence[str] = NAMES) -> sympy.Expr:
    """Turn a formula into a sympy expression in positive symbols.

    A ValueError names the piece that is outside the grammar or its bounds.
    """
    if grammar.size(grammar.syntax(text, names)) > SMALL:
        try:
            bounded.call(lambda: bool(build(text, names)))
        except bounded.OutOfLimits as limits:
            raise ValueError(f"sympy needs {limits} to read the formula") from None
    return build(text, names)


def latex(text: str, names: Sequence[str] = NAMES, precision: int = 3) -> str:
    """Return a formula as LaTeX, its numbers rounded to ``precision`` digits."""
    expression = parse(text, names)
    rounded = {x: sympy.Float(x, precision) for x in expression.atoms(sympy.Float)}
    return sympy.latex(expression.xreplace(rounded))


def build(text: str, names: Sequence[str] = NAMES) -> sympy.Expr:
    """Build the expression of :func:`parse` in this process, without a limit on time."""
    tree = grammar.syntax(text, names)
    symbols = {name: sympy.Symbol(name, positive=True) for name in names}
    expression = _Builder(symbols).build(tree, power=1.0)
    if expression.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.I):
        raise ValueError(f"not a finite real formula: {grammar.piece(tree)!r}")
    return expression


class _Builder:
    """Build a sympy expression from a checked syntax tree.

    Sympy multiplies integers out, takes them to powers and rewrites exp(k*log(u)) as u**k, all
    without a limit; so every exponent is bounded and every result is rounded where it is large.
    """

    def __init__(self, symbols: dict[str, sympy.Symbol]) -> None:
        self.symbols = symbols

    def build(self, node: ast.AST, power: float) -> Any:
        """Return the expression of a node below exponents whose product is ``power``."""
        match node:
            case ast.Constant(value=int() | float() as value):
                return _number(value, node)
            case ast.Name(id=name):
                return self.symbols[name]
            case ast.UnaryOp(op=op, operand=operand):
                value = self.build(operand, power)
                return -value if isinstance(op, ast.USub) else value
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _tamed(self._power(left, right, power), node)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                numerator, denominator = self.build(left, power), self.build(right, power)
                if denominator == 0:
                    raise ValueError(f"division by zero in {grammar.piece(node)!r}")
                return _tamed(numerator / denominator, node)
            case ast.BinOp(left=left, op=op, right=right):
                operate = grammar.OPERATORS[type(op)]
                return _tamed(operate(self.build(left, power), self.build(right, power)), node)
            case ast.Call(func=ast.Name(id=name), args=[argument]):
                return _tamed(self._call(name, argument, power), node)
        raise TypeError(f"unchecked node {type(node).__name__}")

    def _power(self, left: ast.AST, right: ast.AST, power: float) -> Any:
        if any(isinstance(node, ast.Pow) for node in ast.walk(right)):
            raise ValueError(f"a power inside an exponent: {grammar.piece(right)!r}")
        exponent = self.build(right, power)
        if not exponent.is_number:
            _bound_logarithms(exponent, right)
            return self.build(left, power) ** exponent
        nested = power * max(1.0, abs(float(exponent)))
        if nested > MAX_POWER:
            raise _too_large(right)
        base = self.build(left, nested)
        if base.is_number:
            return _fold(lambda value: value ** float(exponent), base, left)
        return base**exponent

    def _call(self, name: str, argument: ast.AST, power: float) -> Any:
        inner = power * 2 if name == "square" else power
        if inner > MAX_POWER:
            raise ValueError(f"exponents multiply to more than {MAX_POWER:g}")
        value = self.build(argument, inner)
        if value.is_number:
            return _fold(grammar.FUNCTIONS[name], value, argument)
        match name:
            case "square":
                return value**2
            case "inv":
                return 1 / value
            case "abs" | "Abs":  # evaluated, it would multiply out sums of any size
                return value if value.is_nonnegative else sympy.Abs(value, evaluate=False)
            case "exp":
                _bound_logarithms(value, argument)
            case "log" if value.is_negative:  # sympy keeps it until an expansion makes it complex
                raise ValueError(f"not a real number: 'log({grammar.piece(argument)})'")
        return getattr(sympy, name)(value)


def _bound_logarithms(exponent: Any, node: ast.AST) -> None:
    """Refuse an exponent with a large multiple of a logarithm: a power in disguise."""
    for term in sympy.Add.make_args(exponent):
        coefficient, rest = term.as_coeff_Mul()
        if abs(coefficient) > MAX_POWER and rest.has(sympy.log):
            raise _too_large(node)


def _too_large(exponent: ast.AST) -> ValueError:
    return ValueError(f"exponent {grammar.piece(exponent)!r} is too large; at most {MAX_POWER:g}")


def _fold(function: Callable[[Any], Any], value: Any, node: ast.AST) -> Any:
    """Apply a function to a number in float64."""
    with np.errstate(all="ignore"):
        return _number(float(function(np.float64(float(value)))), node)


def _tamed(value: Any, node: ast.AST) -> Any:
    """Round a number, or the coefficient of a product, unless it is a small fraction.

    Roots of negative numbers are refused: sympy would carry them on as complex numbers.
    """
    if value.is_number:
        return value if _is_small(value) else _number(_float(value), node)
    for factor in sympy.Mul.make_args(value):
        if factor is sympy.I or (factor.is_Pow and factor.base.is_Number and factor.base < 0):
            raise ValueError(f"not a real number: {grammar.piece(node)!r}")
    coefficient, rest = value.as_coeff_Mul()
    if coefficient.is_Rational and not _is_small(coefficient):
        return coefficient.evalf() * rest
    return value


def _is_small(number: Any) -> bool:
    return number.is_Rational and max(abs(number.p), number.q) < MAX_EXACT


def _number(value: int | float, node: ast.AST) -> Any:
    """Return a number: whole ones stay exact, so that r**2.0 and r**2 are the same formula."""
    if not math.isfinite(value):
        raise ValueError(f"not a finite real number near {grammar.piece(node)!r}")
    if value == int(value) and abs(value) < (MAX_EXACT if isinstance(value, int) else 1000):
        return sympy.Integer(int(value))
    return sympy.Float(float(value))


def _float(value: Any) -> float:
    try:
        return float(value)
    except (OverflowError, TypeError):  # beyond float64, or not real
        return math.inf
