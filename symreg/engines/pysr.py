"""PySR (Cranmer 2023), the engine of the published results, on the same target as ``operon``.

``import pysr`` starts Julia, and where Julia is missing it downloads one or hangs. So this file
asks a child process first (``STATE_OF_JULIA``) and imports pysr only when the answer is ready.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from symreg import formula, points
from symreg.engines import Status, package_status
from symreg.front import Equation, Front, pareto
from symreg.log_target import MINIMUM_POINTS, LogTarget

# Runs in a child, because it changes juliapkg's global state. It touches no network and imports
# neither pysr nor juliacall. ``can_skip_resolve`` is not public: any surprise means "unknown".
STATE_OF_JULIA = """
import json, juliapkg.state as state
from juliapkg.deps import can_skip_resolve
from juliapkg.find_julia import find_julia
state.STATE["offline"] = True  # forbids a download
resolved = can_skip_resolve()
answer = {"state": "ready", "version": str(resolved["version"])} if resolved else None
if answer is None:
    try:
        _, found = find_julia(prefix=state.STATE["install"])
        answer = {"state": "not resolved", "version": str(found)}
    except Exception as error:
        answer = {"state": "absent", "version": str(error)}
print(json.dumps(answer))
"""
RESOLVE = 'python -c "import pysr"'


@dataclass(frozen=True)
class PySR:
    """One configuration of PySRRegressor.

    Attributes:
        name: The engine's name.
        arguments: Keyword arguments of PySRRegressor, as JSON data.
        target: ``log``, as :mod:`symreg.log_target`, or ``raw``, y and X as they are.
        restarts: Searches per seed, with ``random_state`` counting on from restarts * seed; the
            front with the highest score is kept.
    """

    name: str
    arguments: Mapping[str, Any]
    target: Literal["log", "raw"]
    restarts: int = 1

    @property
    def settings(self) -> dict[str, Any]:
        """The regressor's arguments, the target, the restarts and how the constant is set."""
        constant = "median" if self.target == "log" else "search"
        extra = {"target": self.target, "restarts": self.restarts, "constant": constant}
        return {**self.arguments, **extra}

    def version(self) -> str:
        """Return the version of the pysr package."""
        return version("pysr")

    def status(self) -> Status:
        """Tell whether pysr is installed and its Julia is resolved, from a child process."""
        package = package_status("pysr")
        return julia_status() if package.state == "ready" else package

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str], seed: int) -> Front:
        """Search for y = f(X); see :func:`symreg.fit`. Serial and deterministic.

        Raises:
            ValueError: As :func:`symreg.fit`.
            RuntimeError: Julia is not ready; the message gives the reason.
        """
        inputs, values, back, dropped = self._problem(X, y, names)
        status = self.status()
        if status.state != "ready":
            raise RuntimeError(f"engine {self.name} is {status.state}: {status.reason}")
        start = time.process_time()
        tables = [
            self._search(inputs, values, names, self.restarts * seed + restart)
            for restart in range(self.restarts)
        ]
        seconds = time.process_time() - start
        fronts = [
            Front(
                equations=_equations(table, back),
                engine=self.name,
                version=self.version(),
                settings=self.settings,
                seed=seed,
                seconds=seconds,
                dropped=dropped,
            )
            for table in tables
        ]
        return max(fronts, key=lambda front: max(front.scores()))

    def _problem(
        self, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Callable[[str], str], float]:
        """Return what the search sees, the way back to physical units and the dropped share."""
        if self.target == "log":
            target = LogTarget.of(X, y, names)
            return target.inputs, target.values, target.physical, target.dropped
        X, y = points.check(X, y, names)
        keep = np.isfinite(y) & np.all(np.isfinite(X), axis=1)
        if keep.sum() < MINIMUM_POINTS:
            raise ValueError(f"only {keep.sum()} of {len(y)} points are finite")
        known = tuple(names)
        return X[keep], y[keep], lambda text: str(formula.parse(text, known)), 1 - keep.mean()

    def _search(
        self, X: npt.NDArray[Any], y: npt.NDArray[Any], names: Sequence[str], random_state: int
    ) -> Any:
        from pysr import PySRRegressor

        extra: dict[str, Any] = {}
        if "inv(x) = 1/x" in self.arguments.get("unary_operators", ()):
            extra["extra_sympy_mappings"] = {"inv": lambda x: 1 / x}
        search = PySRRegressor(
            **self.arguments,
            **extra,
            random_state=random_state,
            progress=False,
            verbosity=0,
            temp_equation_file=True,
            input_stream="devnull",  # a batch job has no terminal to read "q" from
        )
        search.fit(X, y, variable_names=list(names))
        return search.equations_


def _equations(table: Any, back: Callable[[str], str]) -> tuple[Equation, ...]:
    """Turn PySR's table into equations in physical units, leaving out what is not finite."""
    found = []
    for row in table.itertuples():
        try:
            expression = back(str(row.sympy_format))
        except ValueError:
            continue
        found.append(Equation(int(row.complexity), float(row.loss), expression))
    return pareto(found)


@functools.cache
def julia_status(timeout: float = 60.0) -> Status:
    """Ask a child process, once per process, whether Julia and PySR's packages are there."""
    try:
        child = subprocess.run(
            [sys.executable, "-c", STATE_OF_JULIA],
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        answer = json.loads(child.stdout.strip().splitlines()[-1])
        state, found = answer["state"], answer["version"]
    except subprocess.TimeoutExpired:
        return Status("unknown", f"the probe for Julia took more than {timeout:g} s")
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return Status("unknown", "the probe for Julia failed; to find out, run: " + RESOLVE)
    if state == "ready":
        return Status("ready", f"Julia {found}")
    if state == "not resolved":
        return Status("not resolved", f"Julia {found} lacks PySR's packages; run: {RESOLVE}")
    return Status("absent", f"{found}; install Julia, or run online: {RESOLVE}")


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
