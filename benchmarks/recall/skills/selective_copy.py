"""Selective copying: words among blanks, to be repeated without the blanks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.recall.measures import IGNORE, Integers
from benchmarks.recall.skills.skill import Skill


@dataclass(frozen=True)
class SelectiveCopy(Skill):
    """Repeat the words of the row in their order.

    ``n_copy`` random words 0 .. V - 3 stand among L - 2 ``n_copy`` - 1 blanks V - 2, then the copy
    token V - 1, then ``n_copy`` blanks at which the words are asked for. Each of the first blanks
    falls, independently, into one of the ``n_copy`` + 1 places before, between and after the
    words, so the words are spread evenly. A reader answers all.

    Source: athms/mad-lab 0f49a45, selective-copying. There the places come from numpy's global
    generator, which the seed does not set, and no blank ever follows the last word, which so has
    a fixed position; here the places come from the row's own stream, and there is one more.

        >>> rows = SelectiveCopy(vocab_size=6, seq_len=12, n_copy=3).examples(
        ...     "test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [4, 1, 4, 2, 0, 4, 4, 4, 5, 4, 4, 4]
        >>> rows.targets[0].tolist()
        [-100, -100, -100, -100, -100, -100, -100, -100, -100, 1, 2, 0]

    Attributes:
        vocab_size: V, at least 3.
        seq_len: L, above 2 ``n_copy`` + 1.
        n_copy: Words to repeat.

    Raises:
        ValueError: A setting is bad; the message names it.
    """

    stream: ClassVar[str] = "mad.copy"
    vocab_size: int = 16
    seq_len: int = 256
    n_copy: int = 16

    def __post_init__(self) -> None:
        if self.vocab_size < 3:
            raise ValueError(
                f"vocab_size must hold a word, blank and copy token, got {self.vocab_size}"
            )
        if self.n_copy < 1:
            raise ValueError(f"n_copy must be at least 1, got {self.n_copy}")
        if self.seq_len <= 2 * self.n_copy + 1:
            raise ValueError(
                f"seq_len must exceed 2 * n_copy + 1 = {2 * self.n_copy + 1}, got {self.seq_len}"
            )

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the words and the blanks between them."""
        blank, copy = self.vocab_size - 2, self.vocab_size - 1
        words = rng.integers(blank, size=self.n_copy)
        places = rng.integers(self.n_copy + 1, size=self.seq_len - 2 * self.n_copy - 1)
        tokens = np.full(self.seq_len, blank)
        # Word j comes after the blanks of places 0 .. j.
        blanks_before = np.cumsum(np.bincount(places, minlength=self.n_copy + 1))[:-1]
        tokens[np.arange(self.n_copy) + blanks_before] = words
        tokens[-self.n_copy - 1] = copy
        targets = np.full(self.seq_len, IGNORE)
        targets[-self.n_copy :] = words
        return tokens, targets


PROBLEM = SelectiveCopy
