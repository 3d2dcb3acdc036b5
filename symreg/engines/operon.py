"""Operon (Burlacu et al. 2020) through pyoperon: genetic programming with local optimisation.

The embedded default. The target is ln y in dimensionless variables (:mod:`symreg.log_target`).
The symbols were chosen knowing that the answer may be a power law, so ``operon_vafa`` stands
beside it with a set that was not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy.typing as npt

from symreg.engines import Status, package_status
from symreg.front import Equation, Front, pareto
from symreg.log_target import LogTarget


@dataclass(frozen=True)
class Operon:
    """One configuration of pyoperon's SymbolicRegressor.

    Attributes:
        name: The engine's name.
        symbols: The allowed symbols, in pyoperon's notation.
    """

    name: str
    symbols: str

    @property
    def settings(self) -> dict[str, Any]:
        """The regressor's arguments, the target, and how the constant is set afterwards."""
        return {**self._arguments(), "target": "log", "constant": "median"}

    def _arguments(self) -> dict[str, Any]:
        return {
            "allowed_symbols": self.symbols,
            "objectives": ["r2", "length"],  # two objectives select NSGA-II
            "optimizer_iterations": 5,
            "max_length": 20,
            "population_size": 500,
            "generations": 50,
            "epsilon": 1e-12,
            "n_threads": 1,
        }

    def version(self) -> str:
        """Return the version of pyoperon."""
        return version("pyoperon")

    def status(self) -> Status:
        """Tell whether pyoperon is installed."""
        return package_status("pyoperon")

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str], seed: int) -> Front:
        """Search for y = f(X); see :func:`symreg.fit`. Losses are mean squared errors of ln y.

        The constant of every equation is refitted as the median of y / shape; ``settings`` says
        so. About 2 CPU seconds for 1000 points.
        """
        target = LogTarget.of(X, y, names)
        from pyoperon.sklearn import SymbolicRegressor

        start = time.process_time()
        search = SymbolicRegressor(random_state=seed, **self._arguments())
        search.fit(target.inputs, target.values)
        equations = []
        for row in search.pareto_front_:
            # The default of 3 digits prints small constants as zero.
            text = search.get_model_string(row["tree"], precision=25, names=list(target.names))
            try:
                expression = target.physical(text.replace("^", "**"))
            except ValueError:
                continue  # a tree that is not finite on the points is no equation
            loss = float(row["mean_squared_error"])
            equations.append(Equation(int(row["length"]), loss, expression))
        seconds = time.process_time() - start
        return Front(
            equations=pareto(equations),
            engine=self.name,
            version=self.version(),
            settings=self.settings,
            seed=seed,
            seconds=seconds,
            dropped=target.dropped,
        )


ENGINE = Operon("operon", "add,sub,mul,div,square,log,constant,variable")
