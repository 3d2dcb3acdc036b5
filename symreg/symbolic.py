"""Exact comparison of formulas: constant-free shape, size, and whether a ratio is a constant.

Simplification by a computer algebra system can run without end on short formulas, so it happens
in a forked child with a limit on time and on memory, and ``timeout`` is an answer of its own.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import sympy

Answer = Literal["yes", "no", "timeout"]
TIME_LIMIT = 5.0  # seconds
MEMORY_LIMIT = 2 * 1024**3  # bytes on top of what the parent holds


def is_constant(expression: sympy.Expr, seconds: float = TIME_LIMIT) -> Answer:
    """Tell whether an expression simplifies to one without variables.

    Args:
        expression: For example the ratio of two formulas.
        seconds: Time limit of the simplification.

    Returns:
        ``yes``, ``no``, or ``timeout`` when time or memory ran out; a timeout is not a no.
    """
    if not expression.free_symbols:
        return "yes"
    context = multiprocessing.get_context("fork")  # the expression need not be pickled
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_simplify, args=(expression, send), daemon=True)
    child.start()
    send.close()
    try:
        return receive.recv() if receive.poll(seconds) else "timeout"
    except EOFError:  # the child died, for want of memory
        return "timeout"
    finally:
        child.kill()
        child.join()
        receive.close()


def _simplify(expression: sympy.Expr, send: Connection) -> None:
    import sympy

    _limit_memory()
    try:
        answer: Answer = "no"
        for step in (sympy.cancel, sympy.powsimp, sympy.simplify):
            expression = step(expression)
            if not expression.free_symbols:
                answer = "yes"
                break
        send.send(answer)
    except (MemoryError, RecursionError):
        send.send("timeout")


def _limit_memory() -> None:
    """Cap this process's address space; without /proc there is only the time limit."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_LIMIT, hard))


def split_offset(expression: sympy.Expr) -> tuple[sympy.Expr, float]:
    """Split ``f = g + offset``, for a sum or a number times a sum, into g and the constant."""
    coefficient, body = expression.as_coeff_Mul()
    constant, variable = body.as_independent(*body.free_symbols, as_Add=True)
    if not body.free_symbols:
        return expression * 0, float(expression)
    return coefficient * variable, float(coefficient * constant)


def snap_exponents(expression: sympy.Expr, allowed: Mapping[str, Any]) -> sympy.Expr:
    """Round the exponents of variables to the nearest half-integer where that is allowed.

    Args:
        expression: A formula in positive symbols.
        allowed: For each variable that may be snapped, the interval (low, high) of its exponent
            on the data. Both the exponent and the half-integer must lie inside: only then can
            the data not tell one from the other.
    """
    import sympy

    def snap(power: Any) -> Any:
        base, exponent = power.args
        if base.name not in allowed or not exponent.is_number:
            return power
        nearest = sympy.Rational(round(2 * float(exponent)), 2)
        low, high = allowed[base.name]
        inside = low <= float(nearest) <= high and low <= float(exponent) <= high
        return base**nearest if inside else power

    return expression.replace(lambda part: part.is_Pow and part.base.is_Symbol, snap)


def complexity(expression: sympy.Expr) -> int:
    """Return the number of nodes of the expression tree (SRBench's measure)."""
    import sympy

    return sum(1 for _ in sympy.preorder_traversal(expression))


def shape(expression: sympy.Expr) -> str:
    """Return the formula with every number as C and exponents rounded, for counting alike ones.

    Exponents within 0.05 of a half-integer become it; others keep one decimal.
    """
    return str(_shape(expression))


def _shape(expression: Any) -> Any:
    import sympy

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
