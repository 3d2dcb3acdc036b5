"""Recall of the last value: some keys come a second time with another value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.recall.measures import Integers
from benchmarks.recall.mqar import MQAR
from orbits.runs.settings import check_at_least


@dataclass(frozen=True)
class Forgetting(MQAR):
    """Recall where ``n_updates`` keys have a new value after all pairs.

    All else is as in :class:`benchmarks.recall.mqar.MQAR`. The answer is the last value of a key.
    Who answers with the first one is right on keys without an update alone.

    Source: HazyResearch/zoology d88d6f5, zoology/data/forgetting_mqar.py; there the new value may
    be the old one, and the same as that of another key. Here all values of a row differ.

        >>> rows = Forgetting(vocab_size=20, seq_len=12, n_pairs=2, n_updates=1)
        >>> made = rows.examples("test", 0, np.arange(1))
        >>> made.tokens[0].tolist()
        [1, 13, 3, 11, 1, 16, 3, 0, 1, 0, 0, 0]
        >>> made.targets[0, 6:].tolist()
        [11, -100, 16, -100, -100, -100]

    Attributes:
        n_updates: Keys with a second value, at most ``n_pairs``.

    Raises:
        ValueError: There are more updates than pairs, or too few values for both.
    """

    stream: ClassVar[str] = "mqar_forgetting"
    least: ClassVar[str] = "4 * n_pairs + 2 * n_updates = "
    n_updates: int = 2

    def __post_init__(self) -> None:
        check_at_least(self, {"n_updates": 1})
        if self.n_updates > self.n_pairs:
            raise ValueError(
                f"n_updates must be at most n_pairs {self.n_pairs}, got {self.n_updates}"
            )
        if self.n_pairs + self.n_updates > self.vocab_size - self.vocab_size // 2:
            raise ValueError(
                f"vocab_size {self.vocab_size} has fewer than {self.n_pairs + self.n_updates} "
                "values; take a larger one"
            )
        super().__post_init__()

    @property
    def n_shown(self) -> int:
        """Tokens of the pairs and of the updates."""
        return 2 * (self.n_pairs + self.n_updates)

    def shown(
        self, rng: np.random.Generator, keys: Integers, values: Integers
    ) -> tuple[Integers, Integers]:
        """Return pairs and updates, and the last value of each key."""
        once, _ = super().shown(rng, keys, values)
        changed = rng.choice(self.n_pairs, self.n_updates, replace=False)
        left = np.setdiff1d(np.arange(self.vocab_size // 2, self.vocab_size), values)
        answers = values.copy()
        answers[changed] = rng.choice(left, self.n_updates, replace=False)
        updates = np.stack([keys[changed], answers[changed]], axis=1).reshape(-1)
        return np.concatenate([once, updates]), answers


PROBLEM = Forgetting
