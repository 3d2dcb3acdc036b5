"""Values of a formula on points: plain float64 arithmetic, in time bounded by the text's size."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from symreg.formula import grammar


def evaluate(formula: object, names: Sequence[str], X: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Evaluate a formula on points X [n, len(names)], step by step in float64: values [n].

    They are nan where a step is not a real number, for example log(r - 1) at r < 1. A sympy
    expression is evaluated as it prints (to 15 digits). A ValueError tells what is outside the
    grammar.
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ValueError(f"X must have shape [n, {len(names)}], got {X.shape}")
    columns: dict[str, Any] = dict(zip(names, X.T, strict=True))
    if not isinstance(formula, str):  # sympy may print the imaginary unit, where nothing is real
        formula, columns = str(formula), {"I": math.nan, **columns}
    tree = grammar.syntax(formula, tuple(columns))
    with np.errstate(all="ignore"):
        values = _values(tree, columns)
    return np.array(np.broadcast_to(values, len(X)), dtype=np.float64)


def _values(node: ast.AST, columns: Mapping[str, Any]) -> Any:
    """Evaluate a checked syntax tree on arrays."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return np.float64(value)
        case ast.Name(id=name):
            return columns[name]
        case ast.UnaryOp(op=op, operand=operand):
            value = _values(operand, columns)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return grammar.OPERATORS[type(op)](_values(left, columns), _values(right, columns))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return grammar.FUNCTIONS[name](_values(argument, columns))
    raise TypeError(f"unchecked node {type(node).__name__}")
