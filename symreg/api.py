"""Public call of the symbolic search: :func:`fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from symreg import engines, points
from symreg.search.front import Front


def fit(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    names: Sequence[str] = points.NAMES,
    engine: str = "auto",
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
) -> Front:
    """Search for formulas ``y = f(X)`` and return them from simple to accurate.

    Args:
        X: Inputs, shape [n, len(names)], in physical units (AU and solar masses for
            ``r``, ``m1``, ``m2``).
        y: Force magnitudes, shape [n], solar mass AU / year^2. Engines that search ln y drop
            ``y <= 0`` and non-finite values and state the dropped share in the front.
        names: The name of each column of ``X``.
        engine: A name of :func:`symreg.engines.names`, or ``auto``: PySR if its Julia is ready,
            else Operon. The front carries the name of the engine that ran.
        seed: Seed of the search; one seed gives one front on one machine.
        arguments: Search arguments to change, for example ``{"generations": 100}``; those of the
            engine's package, see :meth:`symreg.engines.Engine.configured`.

    Returns:
        At least one equation. For a ``y`` that does not vary it is that constant.

    Raises:
        ValueError: Shapes or names disagree, too few usable points remain, or there is no
            such engine or argument.
        RuntimeError: The engine is known but cannot run here (the message gives its reason), it
            failed, or it found no finite formula.
    """
    X, y = points.check(X, y, names)
    return engines.resolve(engine)[0].configured(**(arguments or {})).fit(X, y, names, seed)
