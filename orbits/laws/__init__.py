"""Force laws between two bodies, one file per law; a new file is found automatically.

A file that does not make a law is left out of :func:`names`, is named by :func:`broken` and by
:func:`get`, and stops nothing else.

A law's magnitude is the attraction between two point masses, in solar masses, astronomical
units (AU) and years: solar mass AU / year^2. It acts on both bodies alike, so the motion of one
relative to the other is that of a single body under the relative acceleration.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import math
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

VARIABLES = ("r", "m1", "m2")
FUNCTIONS = (
    "sqrt", "exp", "log", "Abs", "Min", "Max", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh",
)  # fmt: skip
"""What an expression may call, beside the constant pi."""


@dataclass(frozen=True)
class Law:
    """One force law.

    Attributes:
        name: The name used in configs, result rows and test ids.
        expression: The attraction as a sympy string in ``r`` (AU), ``m1`` (planet, solar masses),
            ``m2`` (star, solar masses) and the names of ``parameters``.
        reference: Where the law comes from.
        parameters: The value of each further constant.
        units: The unit of each parameter.
        exponents: d ln F / d ln x for each variable where the law is a pure power law, else None.
        potential: The potential energy in the same symbols, whose derivative by ``r`` is the
            attraction; solar mass AU^2 / year^2. None where there is no closed form.

    Raises:
        ValueError: A field is missing or cannot be; the message names the law and the field.
    """

    name: str
    expression: str = ""
    reference: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    exponents: Mapping[str, float] | None = None
    potential: str | None = None

    def __post_init__(self) -> None:
        for field_name in ("name", "expression", "reference"):
            value = getattr(self, field_name)
            if not isinstance(value, str) or not value:
                raise self._bad(f"{field_name} must be given as text, got {value!r}")
        for name, value in self.parameters.items():
            if not name.isidentifier() or name in (*VARIABLES, *FUNCTIONS, "pi"):
                raise self._bad(f"parameters has {name!r}, which cannot name a constant")
            if not _is_finite(value):
                raise self._bad(f"parameters: {name} must be a finite number, got {value!r}")
        if set(self.units) != set(self.parameters):
            raise self._bad(
                f"units must name the unit of each parameter ({', '.join(self.parameters)}), got "
                f"{dict(self.units)}"
            )
        if self.exponents is not None:
            numbers = all(map(_is_finite, self.exponents.values()))
            if set(self.exponents) != set(VARIABLES) or not numbers:
                raise self._bad(
                    f"exponents must be a number for each of r, m1, m2, got {dict(self.exponents)}"
                )
        for field_name in ("expression", "potential"):
            text = getattr(self, field_name)
            if text is not None and (fault := _fault(text, tuple(self.parameters))):
                raise self._bad(f"{field_name} {text!r} {fault}")

    def _bad(self, what: str) -> ValueError:
        return ValueError(f"law {self.name!r}: {what}")

    def magnitude(
        self, r: npt.ArrayLike, m1: npt.ArrayLike, m2: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Return the attraction in solar mass AU / year^2, positive towards the other body.

        Args:
            r: Distance in AU, broadcast against the masses.
            m1: Planet mass in solar masses.
            m2: Star mass in solar masses.

        Raises:
            ValueError: A distance or a mass is not positive.
        """
        return self._evaluate(self.expression, 0, r, m1, m2)

    def slope(
        self, r: npt.ArrayLike, m1: npt.ArrayLike, m2: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Return dF/dr in solar mass / year^2; arguments as for :meth:`magnitude`."""
        return self._evaluate(self.expression, 1, r, m1, m2)

    def potential_energy(
        self, r: npt.ArrayLike, m1: npt.ArrayLike, m2: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Return the potential energy in solar mass AU^2 / year^2; arguments as for magnitude.

        Raises:
            ValueError: A distance or a mass is not positive, or the law has no closed form.
        """
        if self.potential is None:
            raise ValueError(f"law {self.name!r} has no closed-form potential")
        return self._evaluate(self.potential, 0, r, m1, m2)

    def relative_acceleration(
        self, r: npt.ArrayLike, m1: npt.ArrayLike, m2: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Return the acceleration of the bodies towards each other, F (m1 + m2) / (m1 m2).

        AU / year^2; arguments as for magnitude.
        """
        return self.magnitude(r, m1, m2) / reduced_mass(m1, m2)

    def _evaluate(
        self,
        expression: str,
        derivatives: int,
        r: npt.ArrayLike,
        m1: npt.ArrayLike,
        m2: npt.ArrayLike,
    ) -> npt.NDArray[np.float64]:
        arrays = {
            name: np.asarray(value, dtype=np.float64)
            for name, value in zip(VARIABLES, (r, m1, m2), strict=True)
        }
        for name, array in arrays.items():
            if not np.all(array > 0):
                raise ValueError(f"{name} must be positive, got a smallest value of {array.min()}")
        values = _compiled(expression, tuple(self.parameters), derivatives)(
            *arrays.values(), *self.parameters.values()
        )
        # A derivative may have lost a variable, and with it that variable's shape.
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        return np.array(np.broadcast_to(values, shape), dtype=np.float64)


def reduced_mass(m1: npt.ArrayLike, m2: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return m1 m2 / (m1 + m2): force over relative acceleration."""
    m1, m2 = np.asarray(m1, np.float64), np.asarray(m2, np.float64)
    return np.asarray(m1 * m2 / (m1 + m2))


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _fault(expression: str, parameters: tuple[str, ...]) -> str | None:
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


@functools.cache
def _catalogue() -> dict[str, Law | str]:
    """Return by file name each law, or the fault of a file that makes none."""
    found: dict[str, Law | str] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        try:
            law = getattr(importlib.import_module(f"{__name__}.{name}"), "LAW", None)
            if not isinstance(law, Law):
                raise ValueError("defines no LAW = Law(...)")
            if law.name != name:
                raise ValueError(f"names its law {law.name!r}; a file is called like its law")
            found[name] = law
        except (Exception, SystemExit) as error:  # what a file does wrong is said of it alone
            what = str(error) or type(error).__name__
            found[name] = f"orbits/laws/{name}.py: {what.splitlines()[0]}"
    return found


def names() -> tuple[str, ...]:
    """Return the names of all laws."""
    return tuple(name for name, law in _catalogue().items() if isinstance(law, Law))


def broken() -> dict[str, str]:
    """Return by name the fault of each file that makes no law, as one line."""
    return {name: line for name, line in _catalogue().items() if isinstance(line, str)}


def get(name: str) -> Law:
    """Return the law called ``name``: that of a file, or a power of the distance.

    Beside the files, ``power_1_25`` is F = k m1 m2 / r^1.25, and likewise for every exponent in
    decimals; ``power_minus_0_25`` grows with the distance.

    Raises:
        ValueError: There is no such law, and the message names near ones and lists the choices;
            or its file makes none, and the message names the file and the field.
    """
    law = _catalogue().get(str(name)) or _power_law(str(name))
    if isinstance(law, str):
        raise ValueError(law)
    if law is not None:
        return law
    near = difflib.get_close_matches(str(name).lower(), names())
    hint = f"; did you mean {', '.join(near)}?" if near else ";"
    raise ValueError(f"unknown law {name!r}{hint} choose from {', '.join(names())}")


def power_name(exponent: float) -> str:
    """Return the name of the law k m1 m2 / r^exponent, to four decimals: ``power_1_25``."""
    digits = f"{abs(exponent):.4f}".rstrip("0").rstrip(".").replace(".", "_")
    return f"power_{'minus_' if round(exponent, 4) < 0 else ''}{digits}"


@functools.cache
def _power_law(name: str) -> Law | None:
    """Return the power law of a name of :func:`power_name`, or None."""
    if re.fullmatch(r"power_(minus_)?\d{1,2}(_\d{1,4})?", name) is None:
        return None
    sign = -1 if "minus" in name else 1
    n = sign * float(name.removeprefix("power_").removeprefix("minus_").replace("_", "."))
    if power_name(n) != name:  # a law has one name
        return None
    from orbits.laws.newton import GRAVITATIONAL_CONSTANT  # a module of this package

    return Law(
        name=name,
        expression="k*m1*m2/r**n",
        potential="k*m1*m2*log(r)" if n == 1 else "-k*m1*m2/((n - 1)*r**(n - 1))",
        # The numerical value of G, so that the force is Newton's at 1 AU.
        parameters={"k": GRAVITATIONAL_CONSTANT, "n": n},
        units={"k": f"AU^{n + 1:g} / (solar mass year^2)", "n": "1"},
        exponents={"r": -n, "m1": 1.0, "m2": 1.0},
        reference="Newton (1687), Principia, Book I, Proposition XLV",
    )


@functools.cache
def _compiled(expression: str, parameters: tuple[str, ...], derivatives: int):
    """Return ``expression``, or its derivative by r, as a numpy function."""
    # sympy takes a while to import, and most callers only list names.
    import sympy

    symbols = {name: sympy.Symbol(name, positive=True) for name in (*VARIABLES, *parameters)}
    parsed = sympy.sympify(expression, locals=symbols).diff(symbols["r"], derivatives)
    return sympy.lambdify(list(symbols.values()), parsed, modules="numpy")
