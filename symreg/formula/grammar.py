"""The grammar of formula strings, checked before anything is computed.

A formula may come out of a file, so it is never handed to ``eval`` or ``sympy.sympify``. It is
made of ``+ - * / **``, unary signs, decimal numbers, the named variables and a few functions, in
ASCII, and is bounded in size.
"""

from __future__ import annotations

import ast
import operator
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MAX_CHARACTERS = 4000
MAX_NODES = 500  # of Python's syntax tree, which counts operators too
MAX_DEPTH = 60  # a sum or a product of many terms is one level

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "Abs": np.abs,
    "square": np.square,
    "inv": np.reciprocal,
}
_CHAINS = ((ast.Add, ast.Sub), (ast.Mult, ast.Div))
# Possessive: a long run of digits is never tried in two ways.
_NUMBER = r"(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d++)?+(?![\w.])"
_TOKEN = re.compile(rf"[ \t]*+(?:{_NUMBER}|[A-Za-z_]\w*+|\*\*|[-+*/(),])", re.ASCII)


def syntax(text: str, names: Sequence[str]) -> ast.expr:
    """Return the syntax tree of a formula; a ValueError names the piece outside the grammar."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError("the formula is empty")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the formula has {len(text)} characters; at most {MAX_CHARACTERS}")
    clash = set(names) & set(FUNCTIONS)
    if clash:
        raise ValueError(f"{', '.join(sorted(clash))} is a function and cannot name a variable")
    text = text.strip()
    _check_tokens(text)
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"not a formula: {_short(text)!r}") from None
    if size(tree) > MAX_NODES:
        raise ValueError(f"the formula has more than {MAX_NODES} nodes")
    _check_node(tree, names, depth=0)
    return tree


def size(tree: ast.AST) -> int:
    """Return the number of nodes of a syntax tree."""
    return sum(1 for _ in ast.walk(tree))


def piece(node: ast.AST) -> str:
    """Return a node as text for a message, shortened."""
    try:
        return _short(ast.unparse(node))
    except (RecursionError, ValueError):
        return type(node).__name__


def _check_tokens(text: str) -> None:
    """Refuse text that is no token of the grammar, before Python's own parser sees it.

    Python reads ``ⅿ1`` as m1 and ``1_0`` as 10; a formula must mean what it looks like.
    """
    for character in text:
        if not character.isascii():
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            raise ValueError(f"not ASCII in a formula: {character!a} ({name})")
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if not token:
            rest = text[position : position + 20].strip(" ")
            hint = "; a power is written **" if rest.startswith("^") else ""
            raise ValueError(f"not allowed in a formula: {rest!r}{hint}")
        position = token.end()


def _check_node(node: ast.AST, names: Sequence[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"the formula is nested more than {MAX_DEPTH} deep")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if value > sys.float_info.max:
                raise ValueError("a number is too large")
        case ast.Name(id=name):
            if name not in names:
                variables = ", ".join(names)
                raise ValueError(f"unknown name {_short(name)!r}; the variables are {variables}")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check_node(operand, names, depth + 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            chained = isinstance(left, ast.BinOp) and any(
                isinstance(op, chain) and isinstance(left.op, chain) for chain in _CHAINS
            )
            _check_node(left, names, depth if chained else depth + 1)
            _check_node(right, names, depth + 1)
        case ast.Call(func=ast.Name(id=name)) if name not in FUNCTIONS:
            choices = ", ".join(FUNCTIONS)
            raise ValueError(f"unknown function {_short(name)!r}; choose from {choices}")
        case ast.Call(func=ast.Name(), args=[argument], keywords=[]):
            _check_node(argument, names, depth + 1)
        case _:
            raise ValueError(f"not allowed in a formula: {piece(node)!r}")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
