"""A power law by least squares on logarithms, in closed form.

A baseline and a sanity bound, never a discovery: it can say nothing but power laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from symreg.engines import Status
from symreg.search.front import Front
from symreg.search.run import Row, run_search
from symreg.search.targets import LogTarget


@dataclass(frozen=True)
class PowerLaw:
    """Ordinary least squares of ln y on the logarithms of the inputs."""

    name: str = "powerlaw"
    settings: dict[str, Any] = field(
        default_factory=lambda: {"method": "log-linear least squares", "constant": "median"}
    )
    rule: str = "knee"  # a front of one equation leaves no choice

    def configured(self, /, **arguments: Any) -> PowerLaw:
        """Return this engine; a closed form has nothing to set."""
        if arguments:
            raise ValueError(f"powerlaw takes no arguments, got {', '.join(arguments)}")
        return self

    def version(self) -> str:
        """Return the version of the method."""
        return "1"

    def status(self) -> Status:
        """Return ready: the closed form needs only numpy."""
        return Status("ready", "closed form")

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, names: Sequence[str], seed: int) -> Front:
        """Return a front of one equation; see :func:`symreg.fit`. Nothing here is random."""
        target = LogTarget.of(X, y, names)
        return run_search(self, target, seed, lambda: [_solve(target)])


def _solve(target: LogTarget) -> Row:
    design = np.column_stack([np.ones(len(target.y)), np.log(target.inputs)])
    solution = np.linalg.lstsq(design, target.values, rcond=None)[0]
    loss = float(np.mean((target.values - design @ solution) ** 2))
    offset, *exponents = solution.tolist()
    terms = [
        f"({exponent!r})*log({name})"
        for name, exponent in zip(target.names, exponents, strict=True)
    ]
    return Row(2 * len(terms) + 1, loss, " + ".join([f"({offset!r})", *terms]))


ENGINE = PowerLaw()
