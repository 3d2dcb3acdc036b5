"""Best possible estimates of masses and forces from the observations of a protocol.

Where both masses show in what is observed, an orbit is fitted to it (:mod:`orbits.ceiling`); where
the planet's is mostly invisible, it is an expectation over what remains possible
(:mod:`orbits.posterior`). Either sees whole sequences, and a model the past alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import ceiling, posterior
from orbits.protocol import Protocol

Array = npt.NDArray[np.float64]


class Answer(NamedTuple):
    """Best estimates of the masses and forces in N sequences.

    Attributes:
        log_m1: ln of the planet's mass in solar masses, [N].
        log_m2: ln of the star's mass, [N]; None where the observer is told it.
        force: Geometric mean of the force's magnitude, the best estimate of ln F, in solar mass
            AU / year^2 at the planet's rows, NaN elsewhere, [N, T].
        mean_force: Arithmetic mean of the magnitude, the best estimate of F; equal to ``force``
            where an orbit fit leaves no doubt.
    """

    log_m1: Array
    log_m2: Array | None
    force: Array
    mean_force: Array


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
        forces = (
            posterior.implied_force(protocol, seed, split, indices, m1)
            for m1 in (np.exp(known.m1_log_mean), known.m1_mean)
        )
        return Answer(known.m1_log_mean, None, *forces)
    found = ceiling.best_fit(protocol, seed, split, indices)
    force = ceiling.implied_force(protocol, found)
    return Answer(np.log(found.m1), np.log(found.m2), force, force)
