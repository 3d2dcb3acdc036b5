"""Regression of the change of an output on the true change, from sums over sequences.

The true change is a sum of two: ``place``, what the bodies' visible places account for (the force
between the old masses in the new places; the straight line through a body's last points), and
``mass``, the rest, for which the masses have to be known. Least squares says how much of either an
output follows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orbits.arithmetic import Array
from orbits.runs.statistics import Interval, bootstrap


def sums(predicted: Array, own: Array, place: Array, mass: Array) -> Array:
    """Return sums of products over each sequence, [N, 11], of changes [N, ...]."""
    true = place + mass
    products = (
        (predicted - true) ** 2,
        true**2,
        predicted * true,
        (predicted - own) ** 2,
        own**2,
        predicted * own,
        place**2,
        mass**2,
        place * mass,
        predicted * place,
        predicted * mass,
    )
    return np.stack([np.sum(p, axis=tuple(range(1, p.ndim))) for p in products], axis=-1)


def metrics(table: Array) -> Mapping[str, Interval]:
    """Return the metrics of sums over sequences [N, 11], with intervals over sequences.

    Returns:
        Those of :func:`against_truth`; ``agreement_own`` and ``slope_own`` against the model's own
        change.
    """
    return {
        **against_truth(table),
        "agreement_own": bootstrap(table, lambda s: 1 - s[..., 3] / s[..., 4]),
        "slope_own": bootstrap(table, lambda s: s[..., 5] / s[..., 4]),
    }


def against_truth(table: Array) -> dict[str, Interval]:
    """Return the metrics of sums over sequences [N, 11] that are about the true change.

    Returns:
        ``agreement`` (1 - SSE / SST about zero) and ``slope`` (through zero); ``slope_place`` and
        ``slope_mass``, of least squares on the two parts of the true change.
    """
    return {
        "agreement": bootstrap(table, lambda s: 1 - s[..., 0] / s[..., 1]),
        "slope": bootstrap(table, lambda s: s[..., 2] / s[..., 1]),
        "slope_place": bootstrap(table, lambda s: _parts(s)[0]),
        "slope_mass": bootstrap(table, lambda s: _parts(s)[1]),
    }


def _parts(s: Array) -> tuple[Array, Array]:
    """Return the two coefficients of least squares without an intercept."""
    place, mass, both, with_place, with_mass = np.moveaxis(s[..., 6:], -1, 0)
    determinant = place * mass - both**2
    return (
        (with_place * mass - with_mass * both) / determinant,
        (with_mass * place - with_place * both) / determinant,
    )
