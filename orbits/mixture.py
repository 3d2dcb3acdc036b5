"""Mixtures of worlds: every sequence obeys a law of its own, most often a power of the distance.

Sequence i of a mixture draws the number of its law and is, bit for bit, sequence i of the world of
that law. So a mixture is a pure function of (protocol, exponents, population, split, seed, index),
as every world is.

Exponents are a fine grid and not a continuum, since orbits of one law are made together. Sequences
are made in blocks (:meth:`Mixture.block`), in which each law has many.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orbits import systems
from orbits.binaries import SAMPLERS
from orbits.laws.family import power_name
from orbits.philox import uniforms
from orbits.protocol import Protocol
from orbits.tokens import TokenLayout

BLOCK = 4096
"""Sequences that are made at once."""
_DRAW = 10
"""Number of the draw that chooses the law; samplers of binaries take those below."""
_SPLIT = ("tokens", "coordinates", "body", "dt")

Batch = dict[str, npt.NDArray]


def spread(low: float, high: float, held_out: Sequence[float], n: int) -> tuple[float, ...]:
    """Return exponents at equal distances over [low, high] without the intervals held out.

    Args:
        low: Least exponent of the distance.
        high: Largest.
        held_out: Ends of the intervals, ascending: low, high, low, high, ...
        n: Number of exponents.

    Returns:
        Middles of n equal parts of what is left, to four decimals, as names of laws have them.

    Raises:
        ValueError: The intervals are not ascending pairs within [low, high], or nothing is left.
    """
    ends = np.array([low, *held_out, high], np.float64)
    if len(ends) % 2 or np.any(np.diff(ends) < 0) or n < 1:
        raise ValueError(
            f"exponents need {low:g} <= ends of held-out intervals <= {high:g}, ascending and in "
            f"pairs, and at least one law; got {', '.join(f'{x:g}' for x in held_out)} and {n}"
        )
    starts, lengths = ends[::2], ends[1::2] - ends[::2]
    if not lengths.sum() > 0:
        raise ValueError(f"nothing is left of exponents {low:g} to {high:g}; hold out less")
    before = np.concatenate([[0.0], np.cumsum(lengths)])
    places = (np.arange(n) + 0.5) / n * before[-1]
    part = np.searchsorted(before, places, side="right") - 1
    return tuple(float(x) for x in np.round(starts[part] + places - before[part], 4))


@dataclass(frozen=True)
class Mixture:
    """Worlds of several power laws in equal parts.

    Attributes:
        protocol: Protocol of sampling and observation, with one planet; its own law plays no part.
        exponents: Exponent of the distance in each law, ``d ln F / d ln r``: -2 for Newton's.
        further: Names of laws that are no powers, in equal parts with the others.
    """

    protocol: Protocol
    exponents: tuple[float, ...]
    further: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.exponents:
            raise ValueError("a mixture needs at least one exponent")
        if self.protocol.max_planets != 1:
            raise ValueError(
                f"a mixture needs one planet, protocol {self.protocol.name!r} has several; take "
                "neutral_step"
            )
        sampler = SAMPLERS.get(self.protocol.sampler)
        if sampler is not None and sampler.left_out:
            raise ValueError(
                f"a mixture of protocol {self.protocol.name!r} would tell the law by the orbits "
                "that are drawn again; take neutral_step"
            )

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.protocol.name}, {self.n_laws} laws"

    @property
    def n_laws(self) -> int:
        """Number of laws."""
        return len(self.exponents) + len(self.further)

    @property
    def max_planets(self) -> int:
        """Largest number of planets of a system."""
        return self.protocol.max_planets

    @property
    def n_bodies(self) -> int | None:
        """Observed bodies of each system."""
        return self.protocol.n_bodies

    @property
    def n_points(self) -> int:
        """Observed points per sequence."""
        return self.protocol.n_points

    @property
    def tokens(self) -> TokenLayout:
        """Vocabulary and bins."""
        return self.protocol.tokens

    def world(self, number: int) -> Protocol:
        """Return the world of the law of a number."""
        powers = len(self.exponents)
        name = (
            power_name(-self.exponents[number])
            if number < powers
            else self.further[number - powers]
        )
        return dataclasses.replace(self.protocol, law=name)

    def numbers(
        self, seed: int, split: str, indices: npt.ArrayLike, population: str = "pretrain"
    ) -> npt.NDArray[np.int64]:
        """Return the number of the law that each sequence obeys, [N].

        Raises:
            ValueError: The split, the population, the seed or an index is impossible.
        """
        stream = systems.stream(population, split)
        u = uniforms(seed, stream, indices, _DRAW + 1)[:, _DRAW]
        return np.floor(u * self.n_laws).astype(np.int64)

    def batch(
        self, seed: int, split: str, indices: npt.ArrayLike, population: str = "pretrain"
    ) -> Batch:
        """Return sequences without labels, law by law.

        Returns:
            The arrays of :meth:`orbits.protocols.Protocol.batch`, and ``exponent`` float64 [N], NaN
            where the law is no power.

        Raises:
            ValueError: As for :meth:`numbers`, or a law does not bind an orbit.
        """
        index = np.asarray(indices, np.int64).reshape(-1)
        numbers = self.numbers(seed, split, index, population)
        exponents = np.array([*self.exponents, *(np.nan for _ in self.further)])
        made: Batch = {"sequence_id": index, "exponent": exponents[numbers]}
        for number in np.unique(numbers):
            rows = np.flatnonzero(numbers == number)
            part = self.world(number).batch(seed, split, index[rows], population)
            for name in _SPLIT:
                whole = made.setdefault(
                    name, np.empty((len(index), *part[name].shape[1:]), part[name].dtype)
                )
                whole[rows] = part[name]
        return made

    def streamed(self, seed: int, split: str, indices: npt.ArrayLike) -> Batch:
        """Return the same as :meth:`batch`, faster where indices lie close: from kept blocks."""
        index = np.asarray(indices, np.int64).reshape(-1)
        blocks, offsets = np.divmod(index, BLOCK)
        parts = [
            (blocks == number, self.block(seed, split, int(number))) for number in np.unique(blocks)
        ]
        made: Batch = {}
        for rows, block in parts:
            for name, values in block.items():
                whole = made.setdefault(
                    name, np.empty((len(index), *values.shape[1:]), values.dtype)
                )
                whole[rows] = values[offsets[rows]]
        return made

    def block(self, seed: int, split: str, number: int) -> Batch:
        """Return the sequences from ``number`` blocks on, kept as long as they are asked for."""
        return _block(self, seed, split, number)


@functools.lru_cache(maxsize=2)
def _block(mixture: Mixture, seed: int, split: str, number: int) -> Batch:
    return mixture.batch(seed, split, np.arange(number * BLOCK, (number + 1) * BLOCK))


def is_held_out(exponent: float, held_out: Sequence[float]) -> bool:
    """Tell whether an exponent lies inside one of the intervals held out, see :func:`spread`."""
    pairs = zip(held_out[::2], held_out[1::2], strict=True)
    return any(low < exponent < high for low, high in pairs)
