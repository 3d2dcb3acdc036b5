"""Orbit fits over the kinds of triples: which bodies attract how is inferred from what is seen.

The ceiling of an observer who knows which kinds there are and how they pull, and is not told which
body is of which. He fits an orbit for every assignment and keeps the one that misses least. The fit
of the right one starts at the truth, as all fits of :mod:`orbits.ceiling`: an upper bound.
"""

from __future__ import annotations

import itertools

import numpy as np

from orbits.arithmetic import Array
from orbits.ceiling import fit
from orbits.disturbed import of_kinds
from orbits.protocol import Protocol
from orbits.systems import Systems

ITERATIONS = 30
"""Most steps of a fit: those of wrong kinds may never end at a minimum."""


def fit_over_kinds(
    protocol: Protocol, world: Systems, n_seen: int, population: Systems | None = None
) -> Array:
    """Return the places by the kinds that miss the first points least, [N, n_points, 2] in AU.

    Those of one kind throughout fit alike, since a factor of all pulls is as good as more mass.

    Args:
        protocol: A protocol of triples.
        world: Systems of it, N.
        n_seen: How many of the observed points the fits see.
        population: As in :func:`orbits.ceiling.fit`.

    Raises:
        ValueError: The protocol has no triples.
    """
    if protocol.disturbance is None or not protocol.disturbance.triple:
        raise ValueError(f"protocol {protocol.name!r} has no kinds; take species")
    matrix, n = protocol.disturbance.matrix, len(world.star_mass)
    tried = np.array(list(itertools.product(range(len(matrix)), repeat=3)))
    couplings = np.unique(of_kinds(matrix, tried), axis=0)
    seen = protocol.tokens.decode(protocol.observe(world)["tokens"][:, 1 : 1 + n_seen])
    best, least = np.full((n, protocol.n_points, 2), np.nan), np.full(n, np.inf)
    for coupling in couplings:
        believed = np.broadcast_to(coupling, (n, 3, 3))
        found = fit(protocol, world, n_seen, population, ITERATIONS, coupling=believed)
        misfit = np.sum((found.points[:, :n_seen] - seen) ** 2, axis=(1, 2))
        better = misfit < least
        least[better], best[better] = misfit[better], found.points[better]
    return best
