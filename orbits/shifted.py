"""Sampler of shifted binaries: those of a protocol, with some of their draws made again.

Shifted system i of a seed, split and population is the unshifted system i with the elements that
the shift names redrawn; all others keep their bits. The time step is chosen for the new orbit by
the protocol's rule, and then moved.

Where the moved step is not among the protocol's (the orbits of which the rule takes the coarsest
step cannot be sampled at twice that), masses, axis and eccentricity are drawn again, with draws
of their own, until it is: every sequence is really shifted, and system i stays a function of i.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import binaries, motion
from orbits.arithmetic import Array, exp
from orbits.philox import uniforms
from orbits.shifts import ELEMENTS, Shift
from orbits.systems import Systems

_FIRST, _PER_TRY, _TRIES = 16, 2 * len(ELEMENTS), 64
"""Draw numbers: from 16 on, eight a try: four of a system drawn again, four of the shift."""


def check(protocol: str, sampler: str, dts: tuple[float, ...], shift: Shift) -> None:
    """Refuse a shift that a protocol cannot make.

    Raises:
        ValueError: Its bodies and time steps cannot be redrawn, or no two of its time steps are
            as far apart as the shift moves them.
    """
    if sampler not in binaries.SAMPLERS:
        raise ValueError(
            f"protocol {protocol!r} has no single planet and chosen time step for shift "
            f"{shift.name!r} to change; take {' or '.join(binaries.SAMPLERS)}"
        )
    if np.all(_moved(dts, np.arange(len(dts)), shift.dt_octaves) < 0):
        raise ValueError(
            f"shift {shift.name!r}: no time step of protocol {protocol!r} has a token after "
            f"{shift.dt_octaves:+d} octaves; its steps are {dts[0]:g} to {dts[-1]:g} years"
        )


def sample(
    shift: Shift,
    sampler: str,
    seed: int,
    stream: int,
    indices: npt.ArrayLike,
    dts: tuple[float, ...],
    max_planets: int = 1,
    law: str = motion.NEWTON,
) -> Systems:
    """Return the systems of a sampler under a shift; arguments as for the sampler.

    Raises:
        ValueError: The seed or an index is impossible, the law does not bind a shifted orbit, or
            an orbit whose time step can be moved was not found.
    """
    binary = binaries.SAMPLERS[sampler]
    index = np.asarray(indices, np.int64).reshape(-1)
    world, points = binary(seed, stream, index, dts, 1, law), binary.points(seed, stream, index)
    left = np.arange(len(index))
    for attempt in range(_TRIES):
        end = _FIRST + _PER_TRY * (attempt + 1)
        u = np.ascontiguousarray(uniforms(seed, stream, index[left], end)[:, end - _PER_TRY :].T)
        again, redrawn = u[: len(ELEMENTS)], u[len(ELEMENTS) :]
        part = world.rows(left)
        if attempt:
            part = _with(part, dict(zip(ELEMENTS, binaries.binary(*again), strict=True)))
        ranges = zip(ELEMENTS, redrawn, strict=True)
        part = _with(
            part,
            {name: _between(name, *shift.redraw[name], v) for name, v in ranges
             if name in shift.redraw},
        )  # fmt: skip
        step = _moved(dts, binary.step(part, points[left], dts, law), shift.dt_octaves)
        part, there = part._replace(dt_index=step), step >= 0
        if attempt:
            there &= ~binary.leaves_out(again)
        for field, values in zip(world, part, strict=True):
            field[left[there]] = values[there]
        left = left[~there]
        if not left.size:
            return world
    raise ValueError(
        f"shift {shift.name!r}: the time step of system {index[left[0]]} cannot be moved by "
        f"{shift.dt_octaves:+d} octaves, in {_TRIES} tries; take fewer"
    )


def _moved(
    dts: tuple[float, ...], index: npt.NDArray[np.int64], octaves: int
) -> npt.NDArray[np.int64]:
    """Return the numbers of the time steps some octaves coarser, -1 where there is none."""
    number = {dt: k for k, dt in enumerate(dts)}
    table = np.array([number.get(dt * 2.0**octaves, -1) for dt in dts])
    return table[index]


def _between(element: str, low: float, high: float, u: Array) -> Array:
    """Return draws from [low, high]: of the eccentricity uniform, of all others log-uniform."""
    if element == "eccentricity":
        return low + (high - low) * u
    # A logarithm in decimals, correctly rounded: that of the math library varies by machine.
    return low * exp(float(Decimal(high / low).ln()) * u)


def _with(world: Systems, elements: dict[str, Array]) -> Systems:
    """Return systems of one planet with some elements [N] replaced."""
    shaped: dict[str, Any] = {
        name: values if name == "star_mass" else values[:, None]
        for name, values in elements.items()
    }
    return world._replace(**shaped)
