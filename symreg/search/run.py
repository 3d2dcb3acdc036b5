"""Run of a symbolic search, from its target to its front."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from symreg.engines import Engine
from symreg.search.front import Equation, Front
from symreg.search.targets import Target


class SearchFailed(RuntimeError):
    """A search that broke down or found nothing finite."""


class Row(NamedTuple):
    """Formula as the engine writes it.

    Attributes:
        complexity: The engine's own size measure.
        loss: The engine's own loss on the target.
        formula: In the grammar of :mod:`symreg.formula.grammar`, of the target's inputs.
    """

    complexity: int
    loss: float
    formula: str


def run_search(
    engine: Engine, target: Target, seed: int, search: Callable[[], Iterable[Row]]
) -> Front:
    """Run ``search`` and return its front: the rows that no simpler one matches in loss.

    A ``y`` that does not vary needs no search: its front is the constant alone. A row that
    ``target.physical`` refuses is left out. ``engine`` signs the front.

    Raises:
        SearchFailed: The package failed, or it found no finite formula.
    """
    start = time.process_time()
    equations: list[Equation] = []
    if target.constant is not None:
        equations.append(Equation(1, 0.0, target.constant))
    else:
        with _one_line(engine.name):
            rows = sorted(row for row in search() if math.isfinite(row.loss))
        for row in rows:
            if not equations or row.loss < equations[-1].loss:
                with contextlib.suppress(ValueError):
                    expression = target.physical(row.formula)
                    equations.append(Equation(row.complexity, row.loss, expression))
    if not equations:
        raise SearchFailed(f"{engine.name} found no finite formula")
    return Front(
        equations=tuple(equations),
        engine=engine.name,
        version=engine.version(),
        settings=engine.settings,
        seed=seed,
        seconds=time.process_time() - start,
        dropped=target.dropped,
        names=tuple(target.names),
        rule=engine.rule,
    )


@contextlib.contextmanager
def _one_line(engine: str) -> Iterator[None]:
    """Report whatever a foreign package raises, a wrong argument for example, in one line."""
    try:
        yield
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SearchFailed(f"{engine} failed: {reason}") from error
