"""Components of the state that a model's new functions depend on.

A white-noise target is a sum over the components of the state, each with a coefficient of its own.
Least squares finds the coefficients of a model's output in the same way, and both are compared
component by component over the datasets: a model whose output follows the place alone has the
place's coefficients and none of the others'. Components that go together (on orbits the place and
the velocity) are told apart as least squares does it: what one explains beyond the others counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from orbits.runs.statistics import Interval, bootstrap, r_squared
from worldmodel.models.state import COMPONENTS

Array = npt.NDArray[np.float64]

PARTS: Mapping[str, tuple[str, ...]] = {
    "position": ("x", "y"),
    "velocity": ("vx", "vy"),
    "log m1": ("log_m1",),
    "log m2": ("log_m2",),
}
"""Components of the state that are reported together, by their name in tables."""
TOGETHER = "all"


def coefficients(states: Array, values: Array, counts: npt.NDArray[np.bool_]) -> Array:
    """Return the least-squares coefficients of values on the state, dataset by dataset, [D, 6].

    Args:
        states: [N, K, 6].
        values: Targets or outputs, [D, N, K].
        counts: Points of each dataset that are fitted, [D, N, K].
    """
    points = np.concatenate([states, np.ones((*states.shape[:2], 1))], axis=-1)
    fits = [
        np.linalg.lstsq(points[here], value[here], rcond=None)[0]
        for value, here in zip(values, counts, strict=True)
    ]
    return np.array(fits)[:, :-1]


def by_component(true: Array, found: Array) -> dict[str, dict[str, Interval]]:
    """Compare coefficients of outputs with those of the targets, component by component.

    Returns:
        For each of :data:`PARTS` ``slope``, that of the outputs' on the targets' coefficients
        through zero, and ``r2``, 1 - SSE / SST about zero: 1 and 1 for a model that carries the
        component, 0 and 0 for one that knows nothing of it. Intervals are over datasets.
    """
    measured = {}
    for name, parts in PARTS.items():
        columns = [COMPONENTS.index(part) for part in parts]
        a, b = true[:, columns], found[:, columns]
        products, squares = (np.sum(x, axis=1) for x in (a * b, a**2))
        table = np.stack([products, squares], axis=-1)
        measured[name] = {
            "slope": bootstrap(table, lambda s: s[..., 0] / s[..., 1]),
            "r2": r_squared(np.sum((b - a) ** 2, axis=1), squares),
        }
    return measured
