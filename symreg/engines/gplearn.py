"""gplearn (Stephens 2016): plain genetic programming, the classical baseline.

No constant optimiser: constants are drawn and mutated, never fitted, so only a law whose constant
drops out in dimensionless variables (a power law does) can come out exactly. The constant in
front is set afterwards, as for ``operon``. Trees have no size limit, only a parsimony penalty.

gplearn's own div, log, sqrt and inv are "protected": log is log|x|, and 0 near 0, so what it
prints is not what it computed. Here they are the plain functions, with a value far off any target
where those are not finite, and a program that met such a value is left out of the front.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from symreg.search.front import Front
from symreg.search.regressor import FIXED, Regressor
from symreg.search.run import Row, run_search
from symreg.search.targets import LogTarget

FUNCTIONS: dict[str, tuple[np.ufunc, str]] = {
    "add": (np.add, "({} + {})"),
    "sub": (np.subtract, "({} - {})"),
    "mul": (np.multiply, "({} * {})"),
    "div": (np.divide, "({} / {})"),
    "neg": (np.negative, "(-{})"),
    "inv": (np.reciprocal, "inv({})"),
    "sqrt": (np.sqrt, "sqrt({})"),
    "log": (np.log, "log({})"),
    "abs": (np.abs, "abs({})"),
    "sin": (np.sin, "sin({})"),
    "cos": (np.cos, "cos({})"),
    "tan": (np.tan, "tan({})"),
}
NOT_FINITE = 1e6
RESERVED = {
    **FIXED,
    "feature_names": "they are the names of the fit",
    "transformer": "it serves classification",
    "class_weight": "it serves classification",
}
TUPLES = ("const_range", "init_depth")


@dataclass(frozen=True)
class GPLearn(Regressor):
    """One configuration of gplearn's SymbolicRegressor, on the target ``log``."""

    constructor = ("gplearn", "genetic.py", "SymbolicRegressor")
    reserved: ClassVar = RESERVED
    operators: ClassVar = {"function_set": tuple(FUNCTIONS)}

    def configured(self, /, **arguments: Any) -> GPLearn:
        """Return this engine with other arguments; ``function_set`` has names of ``FUNCTIONS``."""
        merged = self._changed(arguments)
        self._check_operators(merged)
        return replace(self, arguments=merged)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str], seed: int) -> Front:
        """Search for y = f(X); see :func:`symreg.fit`. Losses are mean squared errors of ln y."""
        target = LogTarget.of(X, y, names)
        # An extra; it takes a second, which is no part of the search.
        from gplearn import functions, genetic

        search = functools.partial(
            self._search, genetic.SymbolicRegressor, functions.make_function, target, seed
        )
        return run_search(self, target, seed, search)

    def _search(
        self,
        regressor: type,
        make_function: Callable[..., Any],
        target: LogTarget,
        random_state: int,
    ) -> list[Row]:
        """Run one search; the rows are its last population and survivors of the earlier ones."""
        arguments = dict(self.arguments)
        for name in TUPLES:
            if isinstance(arguments.get(name), list):
                arguments[name] = tuple(arguments[name])
        with np.errstate(all="ignore"):
            arguments["function_set"] = [
                make_function(function=_finite(plain), name=name, arity=plain.nin)
                for name, (plain, _) in FUNCTIONS.items()
                if name in arguments["function_set"]
            ]
            search = regressor(random_state=random_state, **arguments)
            search.fit(target.inputs, target.values)
            rows = []
            for program in filter(None, itertools.chain(*filter(None, search._programs))):
                formula, values = _read(iter(program.program), target)
                if np.array_equal(values, program.execute(target.inputs)):
                    loss = float(np.mean((values - target.values) ** 2))
                    rows.append(Row(len(program.program), loss, formula))
        return rows


def _finite(plain: np.ufunc) -> Callable[..., Any]:
    """Return ``plain`` with ``NOT_FINITE`` in place of nan and infinity, as gplearn requires."""

    def replaced(values: Any) -> Any:
        return np.where(np.isfinite(values), values, NOT_FINITE)

    if plain.nin == 1:  # gplearn counts the arguments
        return lambda x: replaced(plain(x))
    return lambda x, y: replaced(plain(x, y))


def _read(nodes: Any, target: LogTarget) -> tuple[str, Any]:
    """Return the formula of a program, given in prefix order, and its plain values."""
    node = next(nodes)
    if isinstance(node, int | np.integer):  # an input
        return target.names[node], target.inputs[:, node]
    if isinstance(node, float):
        return f"({float(node)!r})", np.full(len(target.y), node)
    plain, template = FUNCTIONS[node.name]
    arguments = [_read(nodes, target) for _ in range(node.arity)]
    values = plain(*(values for _, values in arguments))
    return template.format(*(formula for formula, _ in arguments)), values


ENGINE = GPLearn(
    "gplearn",
    arguments={
        "population_size": 1000,
        "generations": 20,
        "function_set": ["add", "sub", "mul", "div", "log"],
        "metric": "mse",
        "stopping_criteria": 1e-12,
    },
)
