"""Causal ceiling: forces by orbit fits to the points that a model has seen when it answers.

:mod:`orbits.ceiling` fits a whole sequence, of which a causal model has seen a part. Here every
answer has a fit of its own, to the points up to and including its row's. An error in units of the
error of these fits says how far a model is from the best that can be known at its place.

The observer knows the law of the protocol and the population that models are trained on; that
systems are shifted it does not know. Its prior is therefore the same for every shift: a normal
distribution with the spread of the training population. It is weak, so that it costs next to
nothing where masses show, and it decides where they do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import ceiling, labels, laws, posterior
from orbits.protocol import Protocol
from orbits.systems import Systems

Array = npt.NDArray[np.float64]


class Answer(NamedTuple):
    """Best causal estimates in N sequences, NaN outside the rows that are asked.

    Attributes:
        m1: Planet mass in solar masses, [N, 1 + n_points].
        m2: Star mass in solar masses, [N, 1 + n_points].
        force: The force's magnitude in solar mass AU / year^2, [N, 1 + n_points].
        converged: Whether the fits are at a minimum, [N, 1 + n_points]; False where none is asked.
    """

    m1: Array
    m2: Array
    force: Array
    converged: npt.NDArray[np.bool_]


def causal_ceiling(
    protocol: Protocol,
    seed: int,
    split: str,
    indices: npt.ArrayLike,
    population: Systems | None = None,
) -> Answer:
    """Return the causal ceiling for the two-body sequences of a protocol.

    Args:
        protocol: The protocol, shifted or not; its ``force`` population is used.
        seed: Seed of the data.
        split: Split of the data.
        indices: Trajectory indices, [N].
        population: Systems whose spread is the prior; None for the training population.

    Raises:
        ValueError: The masses of the protocol do not show, it has no labelled population, or there
            is no such sequence.
    """
    if posterior.serves(protocol):
        raise ValueError(
            f"the masses of protocol {protocol.name!r} do not show in its orbits: take "
            "orbits.best_observer, or protocol identifiable"
        )
    world = protocol.systems(seed, split, indices, "force")
    if population is None:
        population = ceiling.typical_systems(protocol)
    shape = len(world.star_mass), 1 + protocol.n_points
    m1, m2, force = (np.full(shape, np.nan) for _ in range(3))
    converged = np.zeros(shape, np.bool_)
    law = laws.get(protocol.law)
    for row in labels.asked_rows(protocol.n_points):
        # Row 0 is the time step, so that the points up to this row's are as many as its number.
        found = ceiling.fit(protocol, world, n_seen=int(row), population=population)
        distance = np.linalg.norm(found.relative[:, row // 2], axis=-1)
        m1[:, row], m2[:, row] = found.m1, found.m2
        force[:, row] = law.magnitude(distance, found.m1, found.m2)
        converged[:, row] = found.converged
    return Answer(m1, m2, force, converged)
