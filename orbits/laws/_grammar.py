"""The grammar of a law's formulas, which are parsed and not evaluated before they are known."""

from __future__ import annotations

import ast
import math
import re

VARIABLES = ("r", "m1", "m2")
FUNCTIONS = (
    "sqrt", "exp", "log", "Abs", "Min", "Max", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh",
)  # fmt: skip
"""Functions that an expression may call; the constant pi is allowed too."""
LARGEST = 10**300
"""Largest whole number of a formula."""
LONGEST, DEEPEST, LARGEST_POWER = 500, 50, 100
"""Most letters of a formula and levels of its tree, and the largest power of a number alone: a
formula from a file must not keep who reads it busy."""


def fault(expression: str, parameters: tuple[str, ...]) -> str | None:
    """Return the fault of a formula, or None; the formula is parsed and not evaluated."""
    if len(expression) > LONGEST:
        return f"is longer than {LONGEST} letters"
    if odd_text := _ODD.search(expression):
        return f"holds {odd_text.group()!r}, which no formula does"
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"is not a formula: {getattr(error, 'msg', error)}"
    if _is_deep(tree):
        return f"is nested more than {DEEPEST} times"
    nodes = list(ast.walk(tree))
    unknown = {node.id for node in nodes if isinstance(node, ast.Name)}
    unknown -= {*VARIABLES, *parameters, *FUNCTIONS, "pi"}
    if unknown:
        return (
            f"uses {', '.join(sorted(unknown))}, which is not r, m1, m2 or one of parameters; "
            "give its value in parameters and its unit in units"
        )
    odd = next((node for node in nodes if not _is_arithmetic(node)), None)
    if odd is None:
        powers = (node for node in nodes if isinstance(node, ast.BinOp) and _is_power(node))
        large = next((node for node in powers if _is_large(node)), None)
        if large is None:
            return None
        return (
            f"holds {ast.unparse(large)!r}; a power must have no power in its exponent, and that "
            f"of a number be a number up to {LARGEST_POWER}"
        )
    if isinstance(odd, ast.Constant) and type(odd.value) in (int, float):
        return "holds a number that is too large"
    shown = repr(ast.unparse(odd)) if isinstance(odd, ast.expr) else type(odd).__name__
    return f"holds {shown}, which is no arithmetic of numbers"


_ODD = re.compile(r"[^ -~]|#|\b\d\w*_")
"""Text that Python reads and a reader might not: letters that look alike, comments, 1_0."""


def _is_deep(tree: ast.AST) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def _is_power(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)


def _is_large(power: ast.BinOp) -> bool:
    """Tell whether a power may be a number that takes long to compute."""
    if any(map(_is_power, ast.walk(power.right))):
        return True
    if any(isinstance(node, ast.Name) and node.id in VARIABLES for node in ast.walk(power.left)):
        return False
    return _largest(power) > LARGEST_POWER


def _largest(node: ast.AST) -> float:
    """Return a bound of the powers of numbers in a formula, infinite where one has a name."""
    if not isinstance(node, ast.BinOp) or not _is_power(node):
        return max((_largest(child) for child in ast.iter_child_nodes(node)), default=1.0)
    parts = list(ast.walk(node.right))
    if any(isinstance(part, ast.Name) for part in parts):
        return math.inf
    values = [x.value for x in parts if isinstance(x, ast.Constant)]
    sizes = [abs(x) for x in values if isinstance(x, int | float)]
    return _largest(node.left) * math.prod(max(1.0, size) for size in sizes)


def _is_arithmetic(node: ast.AST) -> bool:
    """Tell whether a node of a formula is a number, a name, an operation or a known function."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return math.isfinite(value) if isinstance(value, float) else abs(value) <= LARGEST
    if isinstance(node, ast.Call):
        called = node.func
        several = isinstance(called, ast.Name) and called.id in ("Min", "Max")
        whole = isinstance(called, ast.Name) and called.id in FUNCTIONS and not node.keywords
        return whole and (len(node.args) == 1 or (several and len(node.args) > 1))
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
        return not any(isinstance(part, ast.Name) and part.id in FUNCTIONS for part in parts)
    if isinstance(node, ast.Expression):
        return not (isinstance(node.body, ast.Name) and node.body.id in FUNCTIONS)
    return isinstance(node, ast.Name | ast.Load | _OPERATORS)


_OPERATORS = ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow | ast.UAdd | ast.USub
