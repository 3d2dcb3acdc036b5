"""PySR (Cranmer 2023), the engine of the published results, on the same target as ``operon``.

pysr is imported only when its Julia is known to be ready; ``JULIA.md`` says how to get there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy.typing as npt

from symreg.engines import Status
from symreg.search.front import Front
from symreg.search.julia import julia_status, require_juliacall
from symreg.search.regressor import FIXED, Regressor
from symreg.search.run import Row, run_search
from symreg.search.targets import TARGETS, Target

INVERSE = "inv(x) = 1/x"
OPERATORS = {
    "binary_operators": ("+", "-", "*", "/", "^"),
    "unary_operators": (
        *("neg", "inv", INVERSE, "square", "cube", "sqrt", "abs"),
        *("exp", "log", "sin", "cos", "tan"),
    ),
}
RESERVED = {
    **FIXED,
    "operators": "use binary_operators and unary_operators",
    "extra_sympy_mappings": "a function is not plain data",
}


@dataclass(frozen=True)
class PySR(Regressor):
    """One configuration of PySRRegressor.

    Attributes:
        random_states: One search each, whatever the seed; the one that scores highest is kept.
            None: one search, whose ``random_state`` is the seed.
    """

    random_states: tuple[int, ...] | None = None
    constructor = ("pysr", "sr.py", "PySRRegressor")
    reserved: ClassVar = RESERVED
    operators: ClassVar = OPERATORS

    @property
    def settings(self) -> dict[str, Any]:
        """The regressor's arguments, the target, how the constant is set, and the restarts."""
        states = "seed" if self.random_states is None else list(self.random_states)
        return {**super().settings, "random_state": states}

    def configured(self, /, **arguments: Any) -> PySR:
        """Return this engine with other search arguments.

        A search on several processes cannot be repeated exactly. So ``procs`` or
        ``cluster_manager`` set ``parallelism`` to ``multiprocessing``, and any ``parallelism`` but
        ``serial`` sets ``deterministic`` to False, unless they are given too.
        """
        merged = self._changed(arguments)
        self._check_operators(merged)
        return replace(self, arguments=self._parallel(merged, arguments))

    def _parallel(self, merged: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        """Make the arguments on processes and determinism agree, before Julia starts."""
        spread = [name for name in ("procs", "cluster_manager") if merged.get(name) is not None]
        if spread and "parallelism" not in changes:
            merged["parallelism"] = "multiprocessing"
        parallelism = merged.get("parallelism")
        if spread and parallelism != "multiprocessing":
            raise ValueError(f"{self.name}: {spread[0]} needs parallelism='multiprocessing'")
        if spread == ["cluster_manager"]:
            raise ValueError(f"{self.name}: cluster_manager needs procs, the number of its tasks")
        if parallelism != "serial":
            if changes.get("deterministic"):
                raise ValueError(f"{self.name}: deterministic needs parallelism='serial'")
            merged["deterministic"] = False
        return merged

    def status(self) -> Status:
        """Tell whether pysr is installed and its Julia is resolved, from a child process."""
        package = super().status()
        if package.state != "ready":
            return package
        julia = julia_status()
        ready = julia.state == "ready"
        return Status("ready", f"{package.reason}, {julia.reason}") if ready else julia

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str], seed: int) -> Front:
        """Search for y = f(X); see :func:`symreg.fit`."""
        target = TARGETS[self.target].of(X, y, names)
        status = self.status()
        if status.state != "ready":
            raise RuntimeError(f"engine {self.name} is {status.state}: {status.reason}")
        require_juliacall()
        from pysr import PySRRegressor  # starts Julia, which is no part of the search

        return run_search(self, target, seed, lambda: self._search(PySRRegressor, target, seed))

    def _search(self, regressor: type, target: Target, seed: int) -> list[Row]:
        """Run every restart; the rows are the hall of fame of the one that scores highest."""
        if self.random_states is None:
            return _rows(self._hall_of_fame(regressor, target, seed))
        # As published: the score to beat is 0, so a table of one equation is never kept.
        best, highest = None, 0.0
        for random_state in self.random_states:
            table = self._hall_of_fame(regressor, target, random_state)
            score = float(table["score"].max())
            if score > highest:
                best, highest = table, score
        if best is None:
            raise RuntimeError("no restart scored above 0")
        return _rows(best)

    def _hall_of_fame(self, regressor: type, target: Target, random_state: int) -> Any:
        """Run one search and return PySR's table of equations."""
        extra: dict[str, Any] = {}
        if INVERSE in self.arguments.get("unary_operators", ()):
            extra["extra_sympy_mappings"] = {"inv": lambda x: 1 / x}
        quiet = {
            "progress": False,
            "verbosity": 0,
            "temp_equation_file": True,
            "input_stream": "devnull",  # a batch job has no terminal to read "q" from
        }
        search = regressor(**{**quiet, **self.arguments, **extra, "random_state": random_state})
        search.fit(target.inputs, target.values, variable_names=list(target.names))
        return search.equations_


def _rows(table: Any) -> list[Row]:
    return [
        Row(int(row.complexity), float(row.loss), str(row.sympy_format))
        for row in table.itertuples()
    ]


ENGINE = PySR(
    "pysr",
    arguments={
        "niterations": 100,
        "binary_operators": ["+", "-", "*", "/"],
        "unary_operators": ["log", "square"],
        "maxsize": 20,
        "parallelism": "serial",
        "deterministic": True,
    },
    target="log",
)
