"""What a problem is, and the random stream of each of its rows."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

IGNORE = -100
"""Target where no answer is asked for; the default ``ignore_index`` of torch's cross-entropy."""

SPLITS = ("train", "val", "test")

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Examples:
    """Rows of a problem.

    Attributes:
        tokens: What the model reads, [N, L].
        targets: What it must answer at each position, ``IGNORE`` where nothing is asked, [N, L].
            They are already shifted: the answer at position t belongs to the output at t.
    """

    tokens: Integers
    targets: Integers


class Problem(Protocol):
    """Settings that make examples.

    Attributes:
        vocab_size: Tokens are 0 .. vocab_size - 1.
        seq_len: Tokens in a row, L.
    """

    @property
    def vocab_size(self) -> int: ...  # noqa: D102

    @property
    def seq_len(self) -> int: ...  # noqa: D102

    def examples(self, split: str, seed: int, indices: Integers) -> Examples:
        """Return one row per index.

        Args:
            split: ``train``, ``val`` or ``test``.
            seed: The data's seed, 0 <= seed < 2^64.
            indices: Row numbers, not negative, in any order, [N].

        Raises:
            ValueError: Unknown split, or a seed or index out of range.
        """


def generators(
    name: str, split: str, seed: int, indices: npt.ArrayLike
) -> Iterator[np.random.Generator]:
    """Return an independent random generator for each index.

    A stream's address is (name, split, seed, index) in words of fixed width, hashed by numpy's
    SeedSequence into the state of a PCG64. numpy keeps both of these the same on every machine and
    in every version; it may improve how a Generator turns their bits into a choice or a shuffle
    (NEP 19), which the examples in the docstrings, run as tests, would show.

    Args:
        name: The kind of problem, without its settings.
        split: ``train``, ``val`` or ``test``.
        seed: 0 <= seed < 2^64.
        indices: Not negative, [N].

    Raises:
        ValueError: Unknown split, or a seed or index out of range.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be in [0, 2^64), got {seed}")
    rows = row_numbers(indices)
    address = [zlib.crc32(name.encode()), SPLITS.index(split), *_two_words(seed)]
    return (
        np.random.default_rng(np.array([*address, *_two_words(row)], np.uint32)) for row in rows
    )


def row_numbers(indices: npt.ArrayLike) -> list[int]:
    """Return the indices as integers.

    Raises:
        ValueError: One of them is negative.
    """
    rows = np.asarray(indices, dtype=np.int64).reshape(-1).tolist()
    if min(rows, default=0) < 0:
        raise ValueError(f"indices must not be negative, got {min(rows)}")
    return rows


def _two_words(number: int) -> tuple[int, int]:
    return number & 0xFFFFFFFF, number >> 32


def collect(
    streams: Iterator[np.random.Generator],
    row: Callable[[np.random.Generator], tuple[Integers, Integers]],
    seq_len: int,
) -> Examples:
    """Return the tokens and targets, [seq_len] each, that ``row`` draws from each stream."""
    rows = np.array([row(rng) for rng in streams], dtype=np.int64).reshape(-1, 2, seq_len)
    return Examples(tokens=rows[:, 0], targets=rows[:, 1])
