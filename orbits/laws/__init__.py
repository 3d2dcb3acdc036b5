"""Force laws between two bodies, one file per law; a new file is found automatically.

A file that does not make a law is left out of :func:`names`, is named by :func:`broken` and by
:func:`get`, and stops nothing else. One that defines ``FAMILY = Family(...)`` makes laws by their
names: :func:`get` finds them, and :func:`names`, which lists files, does not.

A law's magnitude is the attraction between two point masses, in solar masses, astronomical
units (AU) and years: solar mass AU / year^2. It acts on both bodies alike, so the motion of one
relative to the other is that of a single body under the relative acceleration.
"""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits.laws._grammar import FUNCTIONS, VARIABLES, fault
from orbits.runs import plugins
from orbits.runs.choices import unknown
from orbits.runs.untrusted import is_number

PLACES = {
    "r": np.array([0.3, 1.0, 4.0]),
    "m1": np.array([0.1, 1.0, 3.0]),
    "m2": np.array([2.0, 1.0, 0.7]),
}
"""Distances and masses at which a formula is tried."""


@dataclass(frozen=True)
class Law:
    """One force law.

    Attributes:
        name: The name used in configs, result rows and test ids.
        expression: The attraction as a sympy string in ``r`` (AU), ``m1`` (planet, solar masses),
            ``m2`` (star, solar masses) and the names of ``parameters``.
        reference: Source of the law.
        parameters: The value of each further constant.
        units: The unit of each parameter.
        exponents: d ln F / d ln x for each variable where the law is a pure power law, else None.
        potential: The potential energy in the same symbols, whose derivative by ``r`` is the
            attraction; solar mass AU^2 / year^2. None where there is no closed form.
        base: The law of which this is one with a parameter changed; empty for none.

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
    base: str = ""

    def __post_init__(self) -> None:
        for field_name in ("name", "expression", "reference"):
            value = getattr(self, field_name)
            if not isinstance(value, str) or not value:
                raise self._bad(f"{field_name} must be given as text, got {value!r}")
        for name, value in self.parameters.items():
            plain = name.isidentifier() and name.isascii()
            if not plain or name in (*VARIABLES, *FUNCTIONS, "pi"):
                raise self._bad(f"parameters has {name!r}, which cannot name a constant")
            if not is_number(value):
                raise self._bad(f"parameters: {name} must be a finite number, got {value!r}")
        if set(self.units) != set(self.parameters):
            raise self._bad(
                f"units must name the unit of each parameter ({', '.join(self.parameters)}), got "
                f"{dict(self.units)}"
            )
        if self.exponents is not None:
            numbers = all(map(is_number, self.exponents.values()))
            if set(self.exponents) != set(VARIABLES) or not numbers:
                raise self._bad(
                    f"exponents must be a number for each of r, m1, m2, got {dict(self.exponents)}"
                )
        for field_name in ("expression", "potential"):
            text = getattr(self, field_name)
            if text is not None and (found := fault(text, tuple(self.parameters))):
                raise self._bad(f"{field_name} {text!r} {found}")

    @property
    def not_positive(self) -> tuple[str, ...]:
        """Names of the constants that are zero or negative."""
        return not_positive(self.parameters)

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

    @functools.cached_property
    def mass_degree(self) -> float | None:
        """The p of F(r, c m1, c m2) = c^p F(r, m1, m2), 2 for Newton's law; None if there is none.

        At p = 1 a path shows m1 / m2 and neither mass: if both are doubled, so is the force, and
        every acceleration stays.
        """
        if self.exponents is not None:
            return self.exponents["m1"] + self.exponents["m2"]
        r, m1, m2 = (PLACES[name] for name in VARIABLES)
        degrees = np.log2(self.magnitude(r, 2 * m1, 2 * m2) / self.magnitude(r, m1, m2))
        return None if np.ptp(degrees) > 1e-9 else round(float(degrees[0]), 9)

    @functools.cached_property
    def disagreement(self) -> str | None:
        """Contradiction of the formula by the exponents or the potential; None if there is none."""
        place = PLACES
        force = self.magnitude(**place)
        for name, power in (self.exponents or {}).items():
            found = np.log2(self.magnitude(**place | {name: 2 * place[name]}) / force)
            if not np.allclose(found, power, rtol=0, atol=1e-6):
                return (
                    f"exponents has {power:g} for {name}, the formula {found[0]:.4g}; correct one, "
                    "or leave the exponents out"
                )
        if self.potential is not None:
            step = 1e-4 * place["r"]
            outer, inner = (
                self.potential_energy(**place | {"r": place["r"] + x}) for x in (step, -step)
            )
            if not np.allclose((outer - inner) / (2 * step), force, rtol=1e-5, atol=0):
                return "the derivative of potential by r is not the formula"
        return None

    @property
    def shows_masses(self) -> bool:
        """Whether a path shows both masses, and not their ratio alone."""
        return self.mass_degree is None or not math.isclose(self.mass_degree, 1)

    @functools.cached_property
    def light_planets_move_alike(self) -> bool:
        """Whether planets of a thousandth of their star's mass move as those of a millionth do.

        So it is where F grows as m1: equivalence of inertial and gravitational mass.
        """
        if self.exponents is not None:
            return self.exponents["m1"] == 1
        light, lighter = self.relative_acceleration(1.0, [1e-3, 1e-6], 1.0)
        return bool(abs(light / lighter - 1) < 0.01)

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
        names = tuple(self.parameters)
        try:
            values = _compiled(expression, names, derivatives, self.not_positive)(
                *arrays.values(), *self.parameters.values()
            )
        except (OverflowError, TypeError):
            raise self._bad(f"{expression!r} has numbers that are too large") from None
        if np.iscomplexobj(values):
            raise self._bad(f"{expression!r} has no real value")
        # A derivative may have lost a variable, and with it that variable's shape.
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        return np.array(np.broadcast_to(values, shape), dtype=np.float64)


@dataclass(frozen=True)
class Family:
    """Laws with numbers in their names.

    Attributes:
        name: Pattern of a member's name, with capitals for its numbers.
        expression: The attraction, likewise.
        reference: Source of the laws.
        member: Returns the law of a name, or None where that is no name of a member; a ValueError
            tells what is wrong with a name that is nearly one.
    """

    name: str
    expression: str
    reference: str
    member: Callable[[str], Law | None]


def reduced_mass(m1: npt.ArrayLike, m2: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return m1 m2 / (m1 + m2): force over relative acceleration."""
    m1, m2 = np.asarray(m1, np.float64), np.asarray(m2, np.float64)
    return np.asarray(m1 * m2 / (m1 + m2))


@functools.cache
def _catalogue() -> dict[str, Law | Family | str]:
    """Return each law or family, or the fault of a file that makes none, by file name."""
    found: dict[str, Law | Family | str] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        if name.startswith("_"):
            continue
        try:
            module = importlib.import_module(f"{__name__}.{name}")
            if isinstance(family := getattr(module, "FAMILY", None), Family):
                found[name] = family
                continue
            law = getattr(module, "LAW", None)
            if not isinstance(law, Law):
                raise ValueError("defines no LAW = Law(...)")
            if law.name != name:
                raise ValueError(f"names its law {law.name!r}; a file is called like its law")
            found[name] = law
        except (Exception, SystemExit) as error:  # what a file does wrong is said of it alone
            what = str(error) or type(error).__name__
            found[name] = f"orbits/laws/{name}.py: {what.splitlines()[0]}"
    others, faults = plugins.definitions("LAW", found, Law)
    checked = {name: _checked(law) for name, law in others.items()}
    return found | checked | {f"plug-in {name}": line for name, line in faults.items()}


def _checked(law: Law) -> Law | str:
    """Return a law from outside, or its fault where it contradicts itself."""
    try:
        fault = law.disagreement
    except Exception as error:  # whatever its formula trips over
        fault = " ".join(str(error).split()) or type(error).__name__
    return law if fault is None else f"law {law.name!r}: {fault}"


@functools.cache
def _outside_names() -> frozenset[str]:
    return frozenset(_catalogue()) - {module.name for module in pkgutil.iter_modules(__path__)}


def definition(name: str) -> dict[str, object] | None:
    """Return the formula of a law from outside as plain data; None of one that is known here."""
    outside = _outside_names()
    if not outside:
        return None
    law = get(name)
    if not {law.name, law.base} & outside:
        return None
    return {"expression": law.expression, "parameters": dict(law.parameters)}


def names() -> tuple[str, ...]:
    """Return the names of all laws that have a file."""
    return tuple(name for name, law in _catalogue().items() if isinstance(law, Law))


def families() -> tuple[Family, ...]:
    """Return the families of laws."""
    return tuple(each for each in _catalogue().values() if isinstance(each, Family))


def broken() -> dict[str, str]:
    """Return the fault of each file that makes no law, as one line, by file name."""
    return {name: line for name, line in _catalogue().items() if isinstance(line, str)}


def get(name: str) -> Law:
    """Return the law called ``name``: of a file or a plug-in, or a member of a family.

    A formula is a member too, called as it is written (:mod:`orbits.laws.formula`).

    Raises:
        ValueError: There is no such law, and the message names near ones and lists the choices;
            or its file makes none, and the message names the file and the field.
    """
    law = _catalogue().get(str(name))
    file = plugins.laws_by_file.get(str(name))
    if (fault := _catalogue().get(f"plug-in {file}")) is not None:  # else another law would do
        raise ValueError(fault)
    if isinstance(law, str):
        raise ValueError(law)
    if isinstance(law, Law):
        return law
    for family in families():
        if member := family.member(str(name)):
            return member
    raise unknown("law", name, names(), ", " + ", ".join(each.name for each in families()))


def law_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the law of the world in whose manifest a prediction file was written, if it tells."""
    config = manifest.get("config")
    for part in ("data", "model"):
        own = config.get(part) if isinstance(config, dict) else None
        arguments = own.get("protocol_args") if isinstance(own, dict) else None
        if isinstance(arguments, dict) and isinstance(law := arguments.get("law"), str):
            return law
    return None


def not_positive(constants: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of constants that are zero or negative."""
    return tuple(name for name, value in constants.items() if not value > 0)


def file_name(law: str) -> str:
    """Return a law's name as part of a file's name: that of a formula without its signs."""
    return re.sub(r"[^\w.-]+", "_", law)


def symbolic(
    expression: str, parameters: Iterable[str], not_positive: Container[str] = ()
) -> tuple[Any, list[Any]]:
    """Return a formula of a :class:`Law` in sympy, and its symbols, positive but for some.

    Args:
        expression: The formula, which its law has checked.
        parameters: The names of its constants; their symbols follow those of r, m1 and m2.
        not_positive: Names of constants that are zero or negative.
    """
    # sympy takes a while to import, and most callers only list names.
    import sympy

    symbols = {
        name: sympy.Symbol(name, real=True)
        if name in not_positive
        else sympy.Symbol(name, positive=True)
        for name in (*VARIABLES, *parameters)
    }
    return sympy.sympify(expression, locals=symbols), list(symbols.values())


@functools.cache
def _compiled(
    expression: str, parameters: tuple[str, ...], derivatives: int, not_positive: tuple[str, ...]
):
    """Return ``expression``, or its derivative by r, as a numpy function."""
    import sympy

    parsed, symbols = symbolic(expression, parameters, not_positive)
    return sympy.lambdify(symbols, parsed.diff(symbols[0], derivatives), modules="numpy")
