"""Pareto front of the equations of a search, and the rules that choose one of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

RULES = ("knee", "best", "score", "accuracy")
KNEE = 1.2
"""Largest loss that ``knee`` accepts, over the smallest.

A model's errors are not pure noise: on predictions of a good model, long formulas got 4 to 13 %
below the law's loss, and near misses (``exp(0.9*m2)`` for ``m2``) stayed 32 % or more above the
smallest. PySR's 1.5 let those through, and BIC took the long ones.
"""
ROUNDING = 1e-10
"""Losses below this share of the simplest equation's are equal: engines have single precision."""


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


@dataclass(frozen=True)
class Front:
    """Equations in order of complexity, with the settings and the cost of their search.

    Attributes:
        equations: At least one equation, each more complex than the one before.
        engine: Name of the engine that ran.
        version: Version of the package behind it.
        settings: Everything that determines the search except the data and the seed.
        seed: Seed of the search.
        seconds: CPU seconds of the search.
        dropped: Share of points without a logarithm, which the search did not see.
    """

    equations: tuple[Equation, ...]
    engine: str
    version: str
    settings: Mapping[str, Any]
    seed: int
    seconds: float
    dropped: float = 0.0

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

    def best(self, rule: str = "knee") -> Equation:
        """Choose one equation.

        Args:
            rule: ``accuracy``, the smallest loss; ``score``, the highest score; ``best``, the
                highest score among losses of at most 1.5 times the smallest (these three as in
                PySR 2.7.2); ``knee``, the same with ``KNEE`` in place of 1.5 and with losses that
                are rounding errors taken as equal.

        Raises:
            ValueError: There is no such rule.
        """
        if rule not in RULES:
            raise ValueError(f"unknown rule {rule!r}; choose from {', '.join(RULES)}")
        if rule == "accuracy":
            return min(self.equations, key=lambda equation: equation.loss)
        rounding = ROUNDING * self.equations[0].loss if rule == "knee" else 0.0
        smallest = max(min(equation.loss for equation in self.equations), rounding)
        limit = {"knee": KNEE * smallest, "best": 1.5 * smallest, "score": math.inf}[rule]
        rows = zip(self.scores(rounding), self.equations, strict=True)
        candidates = [(value, equation) for value, equation in rows if equation.loss <= limit]
        return max(candidates, key=lambda candidate: candidate[0])[1]

    def record(self) -> dict[str, Any]:
        """Return the front as plain JSON data."""
        return asdict(self)
