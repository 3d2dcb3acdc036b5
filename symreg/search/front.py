"""Pareto front of the equations of a search, and the rules that choose one of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred
from orbits.runs.notebook import html_table
from orbits.runs.untrusted import printable
from symreg.formula.evaluation import evaluate
from symreg.points import NAMES

if TYPE_CHECKING:
    import sympy

RULES = ("knee", "best", "score", "accuracy")
KNEE = 1.2
"""Largest loss that ``knee`` accepts, over the smallest.

A model's errors are not pure noise: on predictions of a good model, long formulas got 4 to 13 %
below the law's loss, and near misses (``exp(0.9*m2)`` for ``m2``) stayed 32 % or more above the
smallest. PySR's 1.5 let those through, and BIC took the long ones.
"""
SHOWN = 7
"""Equations that a front prints: the chosen one and those around it."""
ROUNDING = 1e-10
"""Losses below this share of the simplest equation's are equal: engines have single precision."""

parse = deferred("symreg.formula.parsing:parse")  # sympy, which help and listings do without
latex_of = deferred("symreg.formula.parsing:latex")


@dataclass(frozen=True)
class Equation:
    """One formula of a front.

    Attributes:
        complexity: The engine's own size measure (Operon: nodes of the tree; PySR: complexity).
        loss: The engine's own loss, on the target that the search saw.
        expression: The formula in physical units, in the names that were given to the search.
    """

    complexity: int
    loss: float
    expression: str


@dataclass(frozen=True, repr=False)
class Front:
    """Equations in order of complexity, with the settings and the cost of their search.

    As in PySR, ``sympy()``, ``latex()`` and ``predict(X)`` are of one equation: that of a row
    ``index``, or else the one that :meth:`best` chooses.

    Attributes:
        equations: At least one equation, each more complex than the one before.
        engine: Name of the engine that ran.
        version: Version of the package behind it.
        settings: Everything that determines the search except the data and the seed.
        seed: Seed of the search.
        seconds: CPU seconds of the search.
        dropped: Share of points without a logarithm, which the search did not see.
        names: The columns of the points, in their order.
        rule: The rule by which :meth:`best` chooses unless told otherwise: the engine's own.
    """

    equations: tuple[Equation, ...]
    engine: str
    version: str
    settings: Mapping[str, Any]
    seed: int
    seconds: float
    dropped: float = 0.0
    names: tuple[str, ...] = NAMES
    rule: str = "knee"

    def __post_init__(self) -> None:
        if not self.equations:
            raise ValueError(f"{self.engine}: the search returned no equation")
        sizes = [equation.complexity for equation in self.equations]
        if any(after <= before for before, after in pairwise(sizes)):
            raise ValueError(f"{self.engine}: equations are not in order of complexity: {sizes}")

    def scores(self, rounding: float = 0.0) -> tuple[float, ...]:
        """Return the fall of ln loss per unit of complexity, row by row (PySR 2.7.2).

        The first row scores 0 and a loss of 0 infinity. Losses below ``rounding`` count as that.
        """
        losses = [max(equation.loss, rounding) for equation in self.equations]
        steps = [b.complexity - a.complexity for a, b in pairwise(self.equations)]
        result = [0.0]
        for (before, after), step in zip(pairwise(losses), steps, strict=True):
            if after > 0 and before > 0:
                result.append(-math.log(after / before) / step)
            else:
                # PySR never has a positive loss after a zero one; here it can only lose.
                result.append(math.inf if after <= 0 else -math.inf)
        return tuple(result)

    def best(self, rule: str | None = None) -> Equation:
        """Choose one equation.

        Args:
            rule: ``accuracy``, the smallest loss; ``score``, the highest score; ``best``, the
                highest score among losses of at most 1.5 times the smallest (these three as in
                PySR 2.7.2); ``knee``, the same with ``KNEE`` in place of 1.5 and with losses that
                are rounding errors taken as equal; None for the front's own.

        Raises:
            ValueError: There is no such rule.
        """
        rule = self.rule if rule is None else rule
        check_choice("rule", rule, RULES)
        if rule == "accuracy":
            return min(self.equations, key=lambda equation: equation.loss)
        rounding = ROUNDING * self.equations[0].loss if rule == "knee" else 0.0
        smallest = max(min(equation.loss for equation in self.equations), rounding)
        limit = {"knee": KNEE * smallest, "best": 1.5 * smallest, "score": math.inf}[rule]
        rows = zip(self.scores(rounding), self.equations, strict=True)
        candidates = [(value, equation) for value, equation in rows if equation.loss <= limit]
        return max(candidates, key=lambda candidate: candidate[0])[1]

    def sympy(self, index: int | None = None) -> sympy.Expr:
        """Return an equation as a sympy expression in positive symbols.

        Raises:
            IndexError: The front has no such row.
        """
        return parse(self._row(index).expression, self.names)

    def latex(self, index: int | None = None, precision: int = 3) -> str:
        """Return an equation as LaTeX, its numbers rounded to ``precision`` digits.

        Raises:
            IndexError: The front has no such row.
        """
        return latex_of(self._row(index).expression, self.names, precision)

    def predict(self, X: npt.ArrayLike, index: int | None = None) -> npt.NDArray[np.float64]:
        """Return an equation's values at points, shape [n]; nan where one is not a real number.

        Args:
            X: Points, shape [n, len(names)], columns in the order of ``names``.
            index: Row of the front; None for the best.

        Raises:
            IndexError: The front has no such row.
            ValueError: X has another shape.
        """
        return evaluate(self._row(index).expression, self.names, X)

    def record(self) -> dict[str, Any]:
        """Return the front as plain JSON data."""
        return asdict(self)

    def __repr__(self) -> str:
        rows = self._shown()
        lines = ["   size  loss       equation"]
        for mark, equation in rows:
            text = printable(equation.expression, 300 if mark else 100)
            lines.append(f"{mark:<2} {equation.complexity:<5} {equation.loss:<10.3g} {text}")
        if left := len(self.equations) - len(rows):
            lines.append(f"and {left} more in .equations")
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        rows = [
            (mark, equation.complexity, f"{equation.loss:.3g}", equation.expression)
            for mark, equation in self._shown(len(self.equations))
        ]
        return html_table(rows, ("", "size", "loss", "equation"), self._title())

    def _title(self) -> str:
        return (
            f"Front of {self.engine} {self.version}, seed {self.seed}, {self.seconds:.2g} CPU "
            f"seconds; > is the best by the rule {self.rule}"
        )

    def _shown(self, limit: int = SHOWN) -> list[tuple[str, Equation]]:
        """Return at most ``limit`` equations around the best, which is marked."""
        best = self.best()
        place = self.equations.index(best)
        first = max(0, min(place - limit // 2, len(self.equations) - limit))
        rows = self.equations[first : first + limit]
        return [(">" if equation is best else "", equation) for equation in rows]

    def _row(self, index: int | None) -> Equation:
        if index is None:
            return self.best()
        try:
            return self.equations[index]
        except IndexError:
            last = len(self.equations) - 1
            raise IndexError(f"no row {index}; the front has rows 0 to {last}") from None
