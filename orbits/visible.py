"""Whether orbits can be told from what is seen of them: points a turn, and the edge of the bins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits import motion
from orbits.arithmetic import Array
from orbits.protocols import Protocol
from orbits.systems import SAMPLES_PER_ORBIT, Systems, is_aliased

TRIED = 300
"""Test systems of the trial of a world or a shift, before any work."""
UNSEEN = 0.05
"""Largest share of the systems of a shift that may be sampled too rarely, or leave the bins."""


def periods(protocol: Protocol, world: Systems) -> Array:
    """Return the time in years in which systems of one planet turn, [N].

    The shorter of the time from periapsis to periapsis and the mean time of a turn of the angle.
    """
    orbit = world.orbits(0)
    shape = (orbit.semi_major_axis, orbit.eccentricity, orbit.m1, orbit.m2)
    arrays = tuple(map(np.asarray, shape))
    radial = motion.period(protocol.law, *arrays)
    return np.minimum(radial, motion.angular_period(protocol.law, *arrays))


def aliased(protocol: Protocol, world: Systems) -> npt.NDArray[np.bool_]:
    """Return which systems of one planet have too long a time step for their orbit, [N]."""
    dt = np.asarray(protocol.dts)[world.dt_index]
    return np.asarray(is_aliased(dt, periods(protocol, world)))


def reach(protocol: Protocol, world: Systems) -> Array:
    """Return the largest coordinate in AU that is seen of each system, [N]."""
    places = np.abs(protocol.observe(world)["coordinates"])
    return np.asarray(places.reshape(len(places), -1).max(axis=1))


def bends(protocol: Protocol, world: Systems) -> Array:
    """Return how far the path of each system of one planet bends in a step, in bins, [N].

    The median length of the second difference of planet - star.
    """
    places = protocol.observe(world)["coordinates"][:, 1:]
    relative = places[:, 0::2] - places[:, 1::2]
    bend = np.linalg.norm(np.diff(relative, 2, axis=1), axis=-1)
    return np.asarray(np.median(bend, axis=1)) * protocol.n_bins / (protocol.high - protocol.low)


def check_shifted(protocol: Protocol) -> None:
    """Refuse a protocol's shift by which orbits cannot be told from what is seen of them.

    Args:
        protocol: A protocol of one planet, with a shift.

    Raises:
        ValueError: The law does not bind these orbits, a time step cannot be moved, or of more
            than ``UNSEEN`` of the systems orbits are aliased or leave the bins.
    """
    assert protocol.shift is not None
    world = protocol.systems(0, "test", np.arange(TRIED), "force")
    if (share := float(aliased(protocol, world).mean())) > UNSEEN:
        raise ValueError(
            f"shift {protocol.shift.name!r}: under law {protocol.law!r} its orbits are so fast "
            f"that the time steps of protocol {protocol.name!r} sample {share:.0%} of them fewer "
            f"than {SAMPLES_PER_ORBIT} times a turn"
        )
    if (share := float((reach(protocol, world) > protocol.high).mean())) > UNSEEN:
        raise ValueError(
            f"shift {protocol.shift.name!r}: {share:.0%} of its systems leave the bins of protocol "
            f"{protocol.name!r}, which end at {protocol.high:g} AU"
        )
