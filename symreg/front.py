"""What a symbolic search returns: a Pareto front of equations, and how one is chosen from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

RULES = ("best", "score", "accuracy")


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
    """Equations in order of complexity, with what it took to find them.

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

    def scores(self) -> tuple[float, ...]:
        """Return the fall of ln loss per unit of complexity, row by row (PySR 2.7.2).

        ``score_i = -ln(loss_i / loss_{i-1}) / (complexity_i - complexity_{i-1})``; the first row
        scores 0 and a loss of 0 scores infinity.
        """
        result = [0.0]
        for before, after in pairwise(self.equations):
            if after.loss > 0 and before.loss > 0:
                steps = after.complexity - before.complexity
                result.append(-math.log(after.loss / before.loss) / steps)
            else:
                # PySR never has a positive loss after a zero one; here it can only lose.
                result.append(math.inf if after.loss <= 0 else -math.inf)
        return tuple(result)

    def best(self, rule: str = "best") -> Equation:
        """Choose one equation by a rule of PySR 2.7.2.

        Args:
            rule: ``accuracy``, the smallest loss; ``score``, the highest score; ``best``, the
                highest score among losses of at most 1.5 times the smallest.

        Raises:
            ValueError: There is no such rule.
        """
        if rule not in RULES:
            raise ValueError(f"unknown rule {rule!r}; choose from {', '.join(RULES)}")
        if rule == "accuracy":
            return min(self.equations, key=lambda equation: equation.loss)
        smallest = min(equation.loss for equation in self.equations)
        limit = 1.5 * smallest if rule == "best" else math.inf
        rows = zip(self.scores(), self.equations, strict=True)
        candidates = [(value, equation) for value, equation in rows if equation.loss <= limit]
        return max(candidates, key=lambda candidate: candidate[0])[1]

    def record(self) -> dict[str, Any]:
        """Return the front as plain JSON data."""
        return asdict(self)


def pareto(equations: list[Equation]) -> tuple[Equation, ...]:
    """Keep, in order of complexity, the equations that no simpler one matches in loss."""
    kept: list[Equation] = []
    for equation in sorted(equations, key=lambda row: (row.complexity, row.loss)):
        if math.isfinite(equation.loss) and (not kept or equation.loss < kept[-1].loss):
            kept.append(equation)
    return tuple(kept)
