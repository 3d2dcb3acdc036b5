"""Shifts: distributions of systems outside the one that a model was trained on.

A shift redraws some orbital elements from another range, or moves the time step, and leaves the
rest of a system as it is. What holds in the training distribution alone (a look-up table, a
regression on numbers that go with the force there) fails on it; a law does not.
``orbits/shifts.yaml`` has the shifts of the exam, and a file of the same form adds to them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from orbits.runs.choices import check_choice, unknown
from orbits.runs.untrusted import is_number

ELEMENTS = ("planet_mass", "star_mass", "semi_major_axis", "eccentricity")
"""Elements that can be redrawn: fields of :class:`orbits.systems.Systems`."""

EXPONENTS = ("m1", "m2", "r")
UNSHIFTED = "none"
"""The name of no shift in a row of results; no shift has it."""
LONGEST_NAME = 60
"""Letters of the longest name of a shift, which stands in tables and figures."""
MOST_OCTAVES = 32
"""The largest shift of the time step; longer ones have no place in any protocol."""


@dataclass(frozen=True)
class Shift:
    """One way in which systems differ from those of the training distribution.

    Attributes:
        name: The name used in configs and result rows.
        redraw: Range (low, high) of each redrawn element: ``planet_mass`` and ``star_mass`` in
            solar masses and ``semi_major_axis`` in AU, log-uniform; ``eccentricity``, uniform.
        dt_octaves: Number of factors of two by which the time step is coarser (positive) or finer
            (negative) than the one that the protocol picks for the redrawn system.
        exponent: The exponent of the force that the shift puts to the test: m1, m2, r or None.
        about: One line on the shift for reports. It does not tell two shifts apart.

    Raises:
        ValueError: A field is impossible; the message names the shift and the field.
    """

    name: str
    redraw: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    dt_octaves: int = 0
    exponent: str | None = None
    about: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name == UNSHIFTED:
            raise ValueError(f"a shift needs a name other than {UNSHIFTED!r}, got {self.name!r}")
        if not self.name.isprintable() or len(self.name) > LONGEST_NAME:
            raise ValueError(
                f"a shift's name is printed: take at most {LONGEST_NAME} letters of which none is "
                f"a control character, got {self.name!r:.80}"
            )
        if not isinstance(self.redraw, Mapping):
            raise self._bad(f"redraw must map elements to [low, high], got {self.redraw!r}")
        ranges = {element: self._range(element, ends) for element, ends in self.redraw.items()}
        object.__setattr__(self, "redraw", MappingProxyType(ranges))
        if type(self.dt_octaves) is not int or abs(self.dt_octaves) > MOST_OCTAVES:
            raise self._bad(
                f"dt_octaves must be a whole number from -{MOST_OCTAVES} to {MOST_OCTAVES}, got "
                f"{self.dt_octaves!r:.80}"
            )
        if self.exponent is not None and self.exponent not in EXPONENTS:
            raise self._bad(
                f"unknown exponent {self.exponent!r}; choose from {', '.join(EXPONENTS)} or null"
            )
        if not isinstance(self.about, str) or not self.about.isprintable():
            raise self._bad(f"about must be one line of text, got {self.about!r:.80}")
        if not self.redraw and not self.dt_octaves:
            raise self._bad("it shifts nothing; give redraw or dt_octaves")

    def as_plain(self) -> dict[str, Any]:
        """Return the shift as JSON values for :meth:`from_plain`, without ``about``.

        These are the settings that the data depend on, and so what content addresses hold.
        """
        return {
            "name": self.name,
            "redraw": {element: list(self.redraw[element]) for element in sorted(self.redraw)},
            "dt_octaves": self.dt_octaves,
            "exponent": self.exponent,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Shift:
        """Return the shift of some plain settings, as :meth:`as_plain` or a YAML file has them.

        Raises:
            ValueError: A key is unknown or a setting impossible.
        """
        if not isinstance(plain, Mapping):
            raise ValueError(f"a shift must be a mapping of settings, got {plain!r}")
        known = [each.name for each in fields(cls)]
        for key in plain:
            if key not in known:
                raise ValueError(f"shift {plain.get('name')!r}: {unknown('key', key, known)}")
        return cls(**{"name": "", **plain})

    def __reduce__(self) -> tuple[Any, ...]:
        return Shift.from_plain, ({**self.as_plain(), "about": self.about},)

    def _range(self, element: str, ends: Any) -> tuple[float, float]:
        if element not in ELEMENTS:
            raise self._bad(f"unknown element {element!r}; choose from {', '.join(ELEMENTS)}")
        if not (isinstance(ends, list | tuple) and len(ends) == 2 and all(map(is_number, ends))):
            raise self._bad(f"{element} must be two numbers [low, high], got {ends!r}")
        low, high = map(float, ends)
        if not low < high:
            raise self._bad(f"{element} needs low < high, got [{low:g}, {high:g}]")
        if element == "eccentricity":
            if not (low >= 0 and high < 1):
                raise self._bad(f"eccentricity must stay in [0, 1), got [{low:g}, {high:g}]")
        elif not low > 0:
            raise self._bad(f"{element} must be positive, got [{low:g}, {high:g}]")
        return low, high

    def _bad(self, what: str) -> ValueError:
        return ValueError(f"shift {self.name!r}: {what}")


def names() -> tuple[str, ...]:
    """Return the names of the shifts of the exam."""
    return tuple(_catalogue())


def get(name: str, file: str | Path | None = None) -> Shift:
    """Return the shift with this name, of the exam or of a file that adds to it.

    Raises:
        ValueError: There is none, and the message lists the choices; or as :func:`load`.
    """
    known = catalogue(file)
    check_choice(
        "shift", name, known, ", or one of a YAML file of your own, which --shift-file names"
    )
    return known[name]


def catalogue(file: str | Path | None = None) -> dict[str, Shift]:
    """Return the shifts of the exam, and those of a file (:func:`load`), by name."""
    added = load(file) if file is not None else ()
    return {**_catalogue(), **{shift.name: shift for shift in added}}


def of(setting: str | Mapping[str, Any] | Shift | None) -> Shift | None:
    """Return the shift of a setting: a name, plain settings, a shift, or None for no shift."""
    if setting is None or isinstance(setting, Shift):
        return setting
    return get(setting) if isinstance(setting, str) else Shift.from_plain(setting)


def load(path: str | Path) -> tuple[Shift, ...]:
    """Return the shifts of a YAML file: a list of mappings with the fields of :class:`Shift`.

    Raises:
        ValueError: The file is no such list, a shift is impossible, or two have one name (also one
            of the exam's, unless it is the same shift).
        FileNotFoundError: There is no such file.
    """
    found = _read(Path(path))
    for shift in found:
        if _catalogue().get(shift.name, shift) != shift:
            raise ValueError(
                f"{path}: {shift.name!r} is another shift of the exam; take another name"
            )
    return found


@functools.cache
def _catalogue() -> dict[str, Shift]:
    return {shift.name: shift for shift in _read(Path(__file__).with_suffix(".yaml"))}


def _read(path: Path) -> tuple[Shift, ...]:
    try:
        plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(plain, list) or not plain:
        raise ValueError(f"{path} must be a list of shifts, each with a name and redraw or steps")
    try:
        found = tuple(Shift.from_plain(each) for each in plain)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    _check_names(path, [shift.name for shift in found])
    return found


def _check_names(path: Path, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{path}: two shifts are called {name!r}; rename one")
        seen.add(name)
