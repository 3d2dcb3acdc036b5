"""Memorization: facts that are nowhere in the row and must be learned from the targets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from benchmarks.recall.measures import IGNORE, Integers
from benchmarks.recall.skills.skill import Skill


@dataclass(frozen=True)
class Memorization(Skill):
    """Answer with the value of a key, the same in every row of every split.

    Of n = V - 1 words, keys are 0 .. n/2 - 1 and values n/2 .. n - 1. The row is L/2 times a random
    key followed by the insert token V - 1, at which the key's value is asked for. No two keys have
    the same value.

    Ceiling: N training rows show N L/2 random keys. Of the keys in the test a share
    (1 - 1/n_keys)^(N L/2) was not among them and can only be guessed: with MAD's 256 rows that is
    none of 127 keys at V = 256 but 37% of 4,095 at V = 8192, where no model can exceed 63%.

    Source: athms/mad-lab 0f49a45, memorization.

        >>> problem = Memorization(vocab_size=8, seq_len=6)
        >>> problem.facts.tolist()
        [5, 3, 6]
        >>> rows = problem.examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [1, 7, 2, 7, 0, 7]
        >>> rows.targets[0].tolist()
        [-100, 3, -100, 6, -100, 5]

    Attributes:
        vocab_size: V, at least 3.
        seq_len: L, even.
        map_seed: The facts' own seed; that of the rows does not touch them.

    Raises:
        ValueError: A setting is bad; the message names it.
    """

    stream: ClassVar[str] = "mad.memorization"
    vocab_size: int = 256
    seq_len: int = 32
    map_seed: int = 12345

    def __post_init__(self) -> None:
        if self.vocab_size < 3:
            raise ValueError(
                f"vocab_size must hold a key, a value and the insert token, got {self.vocab_size}"
            )
        self.check_even_length(2)
        if self.map_seed < 0:
            raise ValueError(f"map_seed must not be negative, got {self.map_seed}")

    @cached_property
    def facts(self) -> Integers:
        """The value of each key, [n_keys]."""
        n_keys = (self.vocab_size - 1) // 2
        rng = np.random.default_rng(self.map_seed)
        return n_keys + rng.permutation(self.vocab_size - 1 - n_keys)[:n_keys]

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the keys."""
        keys = rng.integers(len(self.facts), size=self.seq_len // 2)
        tokens = np.full(self.seq_len, self.vocab_size - 1)
        targets = np.full(self.seq_len, IGNORE)
        tokens[0::2], targets[1::2] = keys, self.facts[keys]
        return tokens, targets


PROBLEM = Memorization
