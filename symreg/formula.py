"""Formula strings: a whitelisting parser, and evaluation on arrays.

A formula may come out of a file, so it is never handed to ``eval`` or ``sympy.sympify``. The
grammar is ``+ - * / **``, unary signs, numbers, the named variables and a few functions, and its
size is bounded: ``9.0**9.0**9.0**9.0`` is refused before anything computes it.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from symreg.points import NAMES

if TYPE_CHECKING:
    import sympy

MAX_CHARACTERS = 4000
MAX_NODES = 500
MAX_DEPTH = 60
# The product of all exponents from the root to a leaf: bounds ((r**9)**9)**9 as well as r**729.
MAX_POWER = 200.0
FUNCTIONS = ("sin", "cos", "tan", "exp", "log", "sqrt", "abs", "Abs", "square", "inv")

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_NUMERIC: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
    "Abs": abs,
    "square": lambda x: x * x,
    "inv": lambda x: 1 / x,
}


def parse(text: str, names: Sequence[str] = NAMES) -> sympy.Expr:
    """Turn a formula into a sympy expression in positive symbols.

    Args:
        text: The formula, for example ``39.5*m1*m2/r**2``.
        names: The variables that may occur.

    Raises:
        ValueError: The text is outside the grammar or its bounds; the message names the piece.
    """
    if not isinstance(text, str) or not text.strip():
        raise ValueError("the formula is empty")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the formula has {len(text)} characters; at most {MAX_CHARACTERS}")
    clash = set(names) & set(FUNCTIONS)
    if clash:
        raise ValueError(f"{', '.join(sorted(clash))} is a function and cannot name a variable")
    try:
        body = ast.parse(text.strip(), mode="eval").body
        if sum(1 for _ in ast.walk(body)) > MAX_NODES:
            raise ValueError(f"the formula has more than {MAX_NODES} nodes")
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"not a formula: {_short(text)}") from None
    import sympy

    reader = _Reader({name: sympy.Symbol(name, positive=True) for name in names})
    expression = reader.read(body, depth=0, power=1.0)
    if expression.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.I):
        raise ValueError(f"not a finite real formula: {_short(text)}")
    return expression


def evaluate(
    formula: str | sympy.Expr, names: Sequence[str], X: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Evaluate a formula on points.

    Args:
        formula: A formula string, or an expression returned by :func:`parse`.
        names: The name of each column of ``X``.
        X: Points, shape [n, len(names)].

    Returns:
        Values, shape [n]; nan where the formula is not a real number.

    Raises:
        ValueError: The formula is outside the grammar, or ``X`` has another shape.
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ValueError(f"X must have shape [n, {len(names)}], got {X.shape}")
    expression = parse(formula, names) if isinstance(formula, str) else formula
    import sympy

    symbols = [sympy.Symbol(name, positive=True) for name in names]
    function = sympy.lambdify(symbols, expression, modules="numpy")
    try:
        with np.errstate(all="ignore"):
            values = np.broadcast_to(np.asarray(function(*X.T)), len(X))
            if np.iscomplexobj(values):
                values = np.where(values.imag == 0, values.real, np.nan)
            return np.array(values, dtype=np.float64)
    except OverflowError:  # sympy multiplied integers out beyond the range of float64
        return np.full(len(X), np.nan)


class _Reader:
    """Walk a syntax tree and build the expression, folding constants with bounded arithmetic."""

    def __init__(self, symbols: dict[str, sympy.Symbol]) -> None:
        self.symbols = symbols

    def read(self, node: ast.AST, depth: int, power: float) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError(f"the formula is nested more than {MAX_DEPTH} deep")
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return _number(value)
            case ast.Name(id=name):
                if name not in self.symbols:
                    known = ", ".join(self.symbols)
                    raise ValueError(f"unknown name {_short(name)!r}; the variables are {known}")
                return self.symbols[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.read(operand, depth + 1, power)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand, depth + 1, power)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._power(left, right, depth, power)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                one, other = self.read(left, depth + 1, power), self.read(right, depth + 1, power)
                if isinstance(op, ast.Div) and other == 0:
                    raise ValueError(f"division by zero in {_piece(node)!r}")
                return _OPERATORS[type(op)](one, other)
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if (
                name in FUNCTIONS
            ):
                return self._call(name, argument, depth, power)
            case ast.Call(func=ast.Name(id=name)) if name not in FUNCTIONS:
                raise ValueError(
                    f"unknown function {_short(name)!r}; choose from {', '.join(FUNCTIONS)}"
                )
        raise ValueError(f"not allowed in a formula: {_piece(node)!r}")

    def _power(self, left: ast.AST, right: ast.AST, depth: int, power: float) -> Any:
        if any(isinstance(node, ast.Pow) for node in ast.walk(right)):
            raise ValueError(f"a power inside an exponent: {_piece(right)!r}")
        exponent = self.read(right, depth + 1, power)
        if not exponent.is_number:
            return self.read(left, depth + 1, power) ** exponent
        nested = power * max(1.0, abs(float(exponent)))
        if nested > MAX_POWER:
            raise ValueError(f"exponent {_piece(right)!r} is too large; at most {MAX_POWER:g}")
        base = self.read(left, depth + 1, nested)
        if base.is_number:
            return _fold(lambda: float(base) ** float(exponent), left)
        return base**exponent

    def _call(self, name: str, argument: ast.AST, depth: int, power: float) -> Any:
        inner = power * 2 if name == "square" else power
        if inner > MAX_POWER:
            raise ValueError(f"exponents multiply to more than {MAX_POWER:g}")
        value = self.read(argument, depth + 1, inner)
        if value.is_number:
            return _fold(lambda: _NUMERIC[name](float(value)), argument)
        if name == "square":
            return value**2
        if name == "inv":
            return 1 / value
        import sympy

        return getattr(sympy, "Abs" if name == "abs" else name)(value)


def _fold(compute: Callable[[], Any], node: ast.AST) -> Any:
    """Do constant arithmetic in float64, where nothing can grow without bound."""
    try:
        value = compute()
    except (ArithmeticError, ValueError):
        value = math.nan
    if isinstance(value, complex) or not math.isfinite(value):
        raise ValueError(f"not a finite real number near {_piece(node)!r}")
    return _number(value)


def _number(value: int | float) -> Any:
    import sympy

    if isinstance(value, int) and abs(value) < 10**15:
        return sympy.Integer(value)
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    # Whole numbers stay exact, so that r**2.0 and r**2 are the same formula.
    whole = value == int(value) and abs(value) < 1000
    return sympy.Integer(int(value)) if whole else sympy.Float(value)


def _piece(node: ast.AST) -> str:
    try:
        return _short(ast.unparse(node))
    except (RecursionError, ValueError):
        return type(node).__name__


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
