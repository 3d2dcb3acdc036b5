"""Search engines behind one protocol. One file per engine; a new file is found automatically.

What they share is in :mod:`symreg.search`. Today's engines:

- ``operon``: genetic programming in C++ on ln y, with symbols that suit power laws; the default.
- ``operon_vafa``: the same search with the operators of Vafa et al. (2025).
- ``operon_raw``: Operon on y as it is, the published target; rule ``score``.
- ``pysr``: the engine of the published results, on ln y; needs Julia, see ``JULIA.md``.
- ``pysr_vafa``: PySR exactly as Vafa et al. (2025) ran it.
- ``gplearn``: genetic programming without an optimiser of constants; needs the extra ``gplearn``.
- ``powerlaw``: least squares on logarithms, the baseline.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, Protocol

import numpy.typing as npt

from orbits.runs import plugins
from orbits.runs.choices import unknown
from symreg.search.front import Front

State = Literal["ready", "not resolved", "misconfigured", "absent", "unknown"]


@dataclass(frozen=True)
class Status:
    """State of an engine on this machine.

    Attributes:
        state: ``ready``; ``not resolved``, one command away; ``misconfigured``, by an environment
            variable; ``absent``; or ``unknown``.
        reason: One line: the version that is ready, or what is wrong and what to do.
    """

    state: State
    reason: str


class Engine(Protocol):
    """Engine of symbolic regression; every file in this folder defines one as ``ENGINE``.

    Attributes:
        name: The file's name; the same string in the command line, result rows and test ids.
        settings: Everything that determines a search except the data and the seed, as JSON data.
        rule: Rule that chooses a formula from its fronts unless the user chooses another.
    """

    @property
    def name(self) -> str:
        """The file's name."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that determine a search, as JSON data."""

    @property
    def rule(self) -> str:
        """The rule of :data:`symreg.search.front.RULES` by which the engine's formula is chosen."""

    def configured(self, /, **arguments: Any) -> Engine:
        """Return the same engine with other search arguments, which ``settings`` then shows.

        Raises:
            ValueError: There is no such argument (the message names near ones), or its value
                does not fit.
            RuntimeError: The package, which says what there is, is not installed.
        """

    def version(self) -> str:
        """Return the version of the package that searches."""

    def status(self) -> Status:
        """Tell whether the engine can run here, without importing it."""

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str], seed: int) -> Front:
        """Search for y = f(X); see :func:`symreg.fit` for arguments and errors."""


PROTOCOL = ("name", "settings", "rule", "configured", "version", "status", "fit")
"""Attributes that an engine from outside must have."""


@functools.cache
def _catalogue() -> tuple[dict[str, Engine], dict[str, str]]:
    """Return every engine by name, and by plug-in the fault of each that makes none."""
    engines: dict[str, Engine] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        engine = importlib.import_module(f"{__name__}.{module.name}").ENGINE
        if engine.name != module.name:
            raise ValueError(f"symreg/engines/{module.name}.py names its engine {engine.name!r}")
        engines[engine.name] = engine
    found, faults = plugins.definitions("ENGINE", engines, needs=PROTOCOL)
    return dict(sorted({**engines, **found}.items())), faults


def broken() -> dict[str, str]:
    """Return the fault of each plug-in that makes no engine, as one line, by name."""
    return dict(_catalogue()[1])


def names() -> tuple[str, ...]:
    """Return the names of all engines, whether they can run here or not."""
    return tuple(_catalogue()[0])


def get(name: str) -> Engine:
    """Return the engine called ``name``; a ValueError names near ones."""
    engines, faults = _catalogue()
    if name in engines:
        return engines[name]
    if name in faults:
        raise ValueError(faults[name])
    raise unknown("engine", name, ("auto", *engines))


def resolve(name: str) -> tuple[Engine, str]:
    """Return the engine for ``name``, and one line with the reason of the choice.

    ``auto`` is PySR if it is ready, else Operon. An engine that is named and cannot run here is a
    RuntimeError.
    """
    if name == "auto":
        pysr = get("pysr").status()
        if pysr.state == "ready":
            return get("pysr"), f"pysr (auto): {pysr.reason}"
        why, *_ = pysr.reason.split(";")  # ls shows how to change it
        return get("operon"), f"operon (auto), as pysr is {pysr.state}: {why}"
    engine = get(name)
    status = engine.status()
    if status.state != "ready":
        raise RuntimeError(f"engine {name} is {status.state}: {status.reason}")
    return engine, f"{name}: {status.reason}"


@functools.cache
def package_version(package: str) -> str:
    """Return the version of an installed package; a grid of cells asks for it hundreds of times.

    Raises:
        PackageNotFoundError: It is not installed.
    """
    return version(package)


def package_status(package: str) -> Status:
    """Return the status of an engine that needs nothing but an installed Python package."""
    try:
        return Status("ready", f"{package} {package_version(package)}")
    except PackageNotFoundError:
        return Status("absent", f"not installed; run: pip install {package}")
