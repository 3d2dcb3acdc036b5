"""Operon (Burlacu et al. 2020) through pyoperon: genetic programming with local optimisation.

The embedded default. The target is ln y in dimensionless variables (:mod:`symreg.search.targets`).
The symbols were chosen knowing that the answer may be a power law, so ``operon_vafa`` stands
beside it with a set that was not. A fit is two searches and the best of what both found: one
alone misses the law in a model's predictions now and then, though it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy.typing as npt

from symreg.search.arguments import Keyword
from symreg.search.front import Front
from symreg.search.regressor import Regressor
from symreg.search.run import Row, run_search
from symreg.search.targets import TARGETS, Target

SYMBOLS = (
    *("add", "sub", "mul", "div", "pow", "square", "sqrt", "abs"),
    *("exp", "log", "sin", "cos", "tan", "constant", "variable"),
)
MORE = {"symbols": Keyword(frozenset(["str"])), "restarts": Keyword(frozenset(["int"]))}


@dataclass(frozen=True)
class Operon(Regressor):
    """One configuration of pyoperon's SymbolicRegressor.

    Attributes:
        restarts: Searches per fit, with ``random_state`` counting on from restarts * seed; the
            front is that of all their equations.
    """

    restarts: int = 2
    constructor = ("pyoperon", "sklearn.py", "SymbolicRegressor")
    operators: ClassVar = {"allowed_symbols": SYMBOLS}

    @property
    def settings(self) -> dict[str, Any]:
        """The regressor's arguments, the target, how the constant is set, and the restarts."""
        return {**super().settings, "restarts": self.restarts}

    def configured(self, /, **arguments: Any) -> Operon:
        """Return this engine with other arguments, among them ``restarts``.

        ``symbols`` is short for ``allowed_symbols``.
        """
        merged = self._changed(arguments, MORE)
        restarts = merged.pop("restarts", self.restarts)
        if restarts < 1:
            raise ValueError(f"{self.name}: restarts must be at least 1, got {restarts}")
        if "symbols" in merged:
            merged["allowed_symbols"] = merged.pop("symbols")
        self._check_operators({"allowed_symbols": merged["allowed_symbols"].split(",")})
        return replace(self, arguments=merged, restarts=restarts)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str], seed: int) -> Front:
        """Search for y = f(X); see :func:`symreg.fit`. About 10 CPU seconds for 1000 points."""
        target = TARGETS[self.target].of(X, y, names)
        # Takes a second, which is no part of the search, and which help and listings do without.
        from pyoperon.sklearn import SymbolicRegressor as regressor

        states = range(self.restarts * seed, self.restarts * (seed + 1))

        def search() -> list[Row]:
            return [row for state in states for row in self._search(regressor, target, state)]

        return run_search(self, target, seed, search)

    def _search(self, regressor: type, target: Target, random_state: int) -> list[Row]:
        """Run one search; the rows are its Pareto front."""
        search = regressor(random_state=random_state, **self.arguments)
        search.fit(target.inputs, target.values)
        rows = []
        for row in search.pareto_front_:
            # The default of 3 digits prints small constants as zero.
            text = search.get_model_string(row["tree"], precision=25, names=list(target.names))
            loss = float(row["mean_squared_error"])
            rows.append(Row(int(row["length"]), loss, text.replace("^", "**")))
        return rows


ENGINE = Operon(
    "operon",
    arguments={
        "allowed_symbols": "add,sub,mul,div,square,log,constant,variable",
        "objectives": ["r2", "length"],  # two objectives select NSGA-II
        "optimizer_iterations": 5,
        "max_length": 20,
        "population_size": 500,
        "generations": 50,
        "epsilon": 1e-12,
        "n_threads": 1,
    },
)
