"""Recall by two keys together: neither of them alone tells the value."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

import numpy as np

from benchmarks.recall.gaps import draw_gaps
from benchmarks.recall.measures import IGNORE, Integers
from benchmarks.recall.problem import Problem


@dataclass(frozen=True)
class Compositional(Problem):
    """Recall the value of each pair of keys, which form a square grid.

    The row starts with all ``n_pairs`` triples of first key, second key and value, in random
    order: sqrt(n_pairs) first keys with as many second ones. After them both keys of each triple
    come back at multiples of three tokens among zeros; the target at the second key is the value.
    The keys come from the lower two thirds of the vocabulary, without 0, and the values from the
    rest, none twice. Gaps are drawn as in :class:`benchmarks.recall.mqar.MQAR`. One key alone
    leaves sqrt(n_pairs) values.

    Source: HazyResearch/zoology d88d6f5, zoology/data/compositional_mqar.py.

        >>> made = Compositional(30, 24, 4).examples("test", 0, np.arange(1))
        >>> made.tokens[0, :12].reshape(4, 3).tolist()
        [[8, 10, 27], [4, 17, 21], [4, 10, 24], [8, 17, 20]]

    Attributes:
        vocab_size: V.
        seq_len: L, even, at least 6 ``n_pairs``.
        n_pairs: Triples, a square number.
        power: As for MQAR.

    Raises:
        ValueError: The number is no square, or the triples do not fit vocabulary or row.
    """

    stream: ClassVar[str] = "mqar_compositional"
    vocab_size: int = 8192
    seq_len: int = 64
    n_pairs: int = 4
    power: float = 0.01

    def __post_init__(self) -> None:
        if self.n_pairs < 1 or self.side**2 != self.n_pairs:
            raise ValueError(f"n_pairs must be a square number such as 4 or 9, got {self.n_pairs}")
        if self.n_pairs > self.third or self.side > self.third - 1:
            raise ValueError(
                f"vocab_size {self.vocab_size} is too small for {self.n_pairs} triples; "
                f"take at least {3 * max(self.n_pairs, self.side + 1)}"
            )
        self.check_even_length(6 * self.n_pairs, "6 * n_pairs = ")
        if not self.power > 0:
            raise ValueError(f"power must be positive, got {self.power}")

    @property
    def side(self) -> int:
        """First keys, and second ones, of a row."""
        return isqrt(max(self.n_pairs, 0))

    @property
    def third(self) -> int:
        """Tokens of each kind; values have the rest."""
        return self.vocab_size // 3

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the grid, its order and the gaps."""
        n, third = self.n_pairs, self.third
        first = 1 + rng.choice(third - 1, self.side, replace=False)
        second = third + rng.choice(third, self.side, replace=False)
        values = 2 * third + rng.choice(self.vocab_size - 2 * third, n, replace=False)
        order = rng.permutation(n)
        triples = np.stack([np.repeat(first, self.side), np.tile(second, self.side)], axis=1)[order]
        queries = 3 * n + 3 * draw_gaps(rng, (self.seq_len - 3 * n) // 3, self.power, n)
        tokens, targets = np.zeros(self.seq_len, np.int64), np.full(self.seq_len, IGNORE)
        tokens[: 3 * n] = np.concatenate([triples, values[:, None]], axis=1).reshape(-1)
        tokens[queries], tokens[queries + 1] = triples.T
        targets[queries + 1] = values
        return tokens, targets


PROBLEM = Compositional
