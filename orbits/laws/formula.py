"""Laws by formula, such as ``k*m1*m2/r**1.7``: without a file, named by the formula itself.

In it ``k`` and ``G`` are the number of Newton's constant, so that the force is Newton's between
solar masses at 1 AU; every other constant is written as a number.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from orbits.laws import PLACES, Family, Law, not_positive, symbolic
from orbits.laws._grammar import FUNCTIONS, VARIABLES, fault
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

CONSTANTS = {"k": GRAVITATIONAL_CONSTANT, "G": GRAVITATIONAL_CONSTANT}


@functools.lru_cache(maxsize=256)
def formula(text: str) -> Law | None:
    """Return the law that a formula of r, m1 and m2 writes down; None if a text is a name.

    Raises:
        ValueError: It is no formula of the grammar, has a constant without a value, lacks one of r,
            m1 and m2, or has no finite real value at any of ``PLACES``.
    """
    if not any(sign in text for sign in "*/+^("):
        return None
    if "^" in text:
        raise ValueError(f"law {text!r}: a power is written **")
    used = _names(text)
    if unknown := sorted(used - {*VARIABLES, *CONSTANTS, *FUNCTIONS, "pi"}):
        raise ValueError(
            f"law {text!r} has a constant without a value, {', '.join(unknown)}; write a number "
            "in its place (k and G alone are 4 pi^2)"
        )
    if found := fault(text, tuple(CONSTANTS)):
        raise ValueError(f"law {text!r} {found}")
    if missing := [name for name in VARIABLES if name not in used]:
        raise ValueError(f"law {text!r} has no {', '.join(missing)}; a law is of r, m1 and m2")
    own = {name: value for name, value in CONSTANTS.items() if name in used}
    try:
        exponents = exponents_of(text, own)
    except (OverflowError, TypeError):
        raise ValueError(f"law {text!r} {_TOO_LARGE}") from None
    law = Law(
        name=text,
        expression=text,
        parameters=own,
        units=dict.fromkeys(own, "in AU, solar masses and years"),
        exponents=exponents,
        reference="a formula",
    )
    with np.errstate(all="ignore"):
        if not np.isfinite(law.magnitude(**PLACES)).any():
            raise ValueError(f"law {text!r} {_TOO_LARGE}")
    return law


_TOO_LARGE = "has no finite real value"


def _names(text: str) -> set[str]:
    """Return the names in a formula; none of another text."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def exponents_of(text: str, constants: Mapping[str, float]) -> dict[str, float] | None:
    """Return the exponents of a pure power law, and None of any other.

    Raises:
        ValueError: The formula divides by zero.
    """
    import sympy  # takes a while, and most laws are no formulas

    parsed, each = symbolic(text, constants, not_positive(constants))
    symbols = {symbol.name: symbol for symbol in each}
    force = sympy.nsimplify(parsed, rational=True)  # 1.7 is 17/10
    if force.has(sympy.zoo, sympy.nan, sympy.oo):
        raise ValueError(f"law {text!r} divides by zero")
    if force.has(sympy.Min, sympy.Max, sympy.Abs):
        return None  # of several forms; what simplifies them may take minutes
    values = {symbols[name]: value for name, value in constants.items()}
    found = {}
    for name in VARIABLES:
        power = (symbols[name] * force.diff(symbols[name]) / force).subs(values)
        if _varies(power):
            return None
        power = sympy.simplify(power)  # takes minutes for some that vary
        if power.free_symbols:
            return None
        found[name] = float(power)
    return found


def _varies(power: Any) -> bool:
    """Tell whether an expression has different values at some places, by numbers alone."""
    names = sorted(power.free_symbols, key=str)
    places = ([(k + 2 + 0.37 * i) ** (-1) ** k for i, _ in enumerate(names)] for k in range(4))
    try:
        told = [complex(power.subs(dict(zip(names, x, strict=True))).evalf()) for x in places]
    except (TypeError, ValueError):
        return True
    return any(abs(x - told[0]) > 1e-6 * (1 + abs(told[0])) for x in told)


FAMILY = Family(
    name="FORMULA",
    expression="a formula, such as k*m1*m2/r**1.7",
    reference="k and G stand for 4 pi^2, all else is a number",
    member=formula,
)
