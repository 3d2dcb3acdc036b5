"""The grammar of a law's formulas, which are parsed and not evaluated before they are known."""

from __future__ import annotations

import ast

VARIABLES = ("r", "m1", "m2")
FUNCTIONS = (
    "sqrt", "exp", "log", "Abs", "Min", "Max", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh",
)  # fmt: skip
"""Functions that an expression may call; the constant pi is allowed too."""


def fault(expression: str, parameters: tuple[str, ...]) -> str | None:
    """Return the fault of a formula, or None; the formula is parsed and not evaluated."""
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError) as error:
        return f"is not a formula: {getattr(error, 'msg', error)}"
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
        return None
    shown = repr(ast.unparse(odd)) if isinstance(odd, ast.expr) else type(odd).__name__
    return f"holds {shown}, which is no arithmetic of numbers"


def _is_arithmetic(node: ast.AST) -> bool:
    """Tell whether a node of a formula is a number, a name, an operation or a known function."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
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
