"""The ceiling of a protocol for masses and force: what its observations allow at best.

Where both masses show in what is observed, an orbit is fitted to it (:mod:`orbits.ceiling`); where
the planet's is mostly invisible, it is an expectation over what remains possible
(:mod:`orbits.posterior`). Either sees whole sequences, and a model the past alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import ceiling, posterior
from orbits.protocols import Protocol

Array = npt.NDArray[np.float64]


class Answer(NamedTuple):
    """What the best observer says of N sequences.

    Attributes:
        log_m1: ln of the planet's mass in solar masses, [N].
        log_m2: ln of the star's, [N]; None where the observer is told.
        force: Magnitude of the force in solar mass AU / year^2 at the planet's rows, NaN
            elsewhere, [N, T].
    """

    log_m1: Array
    log_m2: Array | None
    force: Array


def best_observer(protocol: Protocol, seed: int, split: str, indices: npt.ArrayLike) -> Answer:
    """Return the ceiling for the two-body sequences of a protocol.

    Args:
        protocol: The protocol; its ``force`` population is used.
        seed: Seed of the data.
        split: Split of the data.
        indices: Trajectory indices, [N].

    Raises:
        ValueError: The protocol has no labelled population, or there is no such sequence.
    """
    if posterior.serves(protocol):
        known = posterior.mass_posterior(protocol, seed, split, indices)
        force = posterior.posterior_force(protocol, seed, split, indices)
        return Answer(known.m1_log_mean, None, force)
    found = ceiling.fit(protocol, protocol.systems(seed, split, indices, "force"))
    return Answer(np.log(found.m1), np.log(found.m2), ceiling.implied_force(protocol, found))
