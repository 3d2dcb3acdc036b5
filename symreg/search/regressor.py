"""Engines that search with the regressor of an installed package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from symreg.engines import Status, package_status, package_version
from symreg.search.arguments import Keyword, changed, keywords

FIXED = {
    "random_state": "it is the seed of the fit",
    "warm_start": "every fit is a search of its own",
}


@dataclass(frozen=True)
class Regressor:
    """One configuration of a package's regressor.

    Attributes:
        name: The engine's name.
        arguments: Keyword arguments of the regressor, as JSON data.
        target: ``log`` or ``raw``; see :mod:`symreg.search.targets`.
        rule: Rule that chooses a formula from a front; see :meth:`symreg.search.front.Front.best`.
        constructor: The package, its file and its class that searches.
        reserved: Arguments that cannot be changed, each with the reason.
        operators: Arguments that hold names of operators, with those that a formula may have: an
            equation with another one could not be scored.
    """

    name: str
    arguments: Mapping[str, Any]
    target: Literal["log", "raw"] = "log"
    rule: str = "knee"
    constructor: ClassVar[tuple[str, str, str]]
    reserved: ClassVar[Mapping[str, str]] = FIXED
    operators: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The regressor's arguments, the target, and how the constant is set."""
        constant = "median" if self.target == "log" else "search"
        return {**self.arguments, "target": self.target, "constant": constant}

    def version(self) -> str:
        """Return the version of the package."""
        return package_version(self.constructor[0])

    def status(self) -> Status:
        """Tell whether the package is installed."""
        return package_status(self.constructor[0])

    def _changed(
        self, arguments: Mapping[str, Any], more: Mapping[str, Keyword] | None = None
    ) -> dict[str, Any]:
        """Return the engine's arguments with changes that fit the constructor, or ``more``."""
        known = {**keywords(*self.constructor), **(more or {})}
        return changed(self.name, self.arguments, arguments, known, self.reserved)

    def _check_operators(self, arguments: Mapping[str, Any]) -> None:
        for kind, choices in self.operators.items():
            for operator in arguments.get(kind) or ():
                if operator.strip() not in choices:
                    listed = ", ".join(choices)
                    raise ValueError(f"{self.name}: {kind} has {operator!r}; choose from {listed}")
