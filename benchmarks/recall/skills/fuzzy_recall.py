"""Fuzzy recall: keys and values of several tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.recall.measures import IGNORE, Integers
from benchmarks.recall.skills.skill import Skill

Motif = tuple[int, ...]


@dataclass(frozen=True)
class FuzzyRecall(Skill):
    """Answer with the value that a key had before in the row, both of them motifs.

    n = V - 1 words make key tokens 0 .. n/2 - 1 and value tokens n/2 .. n - 1; V - 1 is padding.
    A motif is 1 to 3 different tokens in any order: first its size is drawn, then the tokens. In
    ``val`` and ``test`` keys always have the largest size. Pairs of random keys with the row's
    value of that key follow one another as long as the longest would still fit; one of them, the
    probe, comes back at the end. Padding stands on the left.

    Targets in ``train``: the next token everywhere, padding included. In ``val`` and ``test``:
    each token of the value, after every key that was shown before. A reader answers all.

    Source: athms/mad-lab 0f49a45, fuzzy-in-context-recall with ``multi_query``. There the probe
    goes in at a random token, which a long pair may step over, and then the last question has no
    answer in the row; here the probe has a random place among the pairs and is always shown.

        >>> problem = FuzzyRecall(vocab_size=8, seq_len=19)
        >>> rows = problem.examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [7, 7, 7, 1, 0, 2, 5, 3, 0, 1, 2, 4, 6, 3, 0, 1, 2, 4, 6]
        >>> rows.targets[0][:-3].max(), rows.targets[0][-3:].tolist()
        (np.int64(-100), [4, 6, 3])

    Attributes:
        vocab_size: V.
        seq_len: L, at least twice the longest pair.
        max_key: Tokens of the longest key.
        max_value: Tokens of the longest value.

    Raises:
        ValueError: The motifs do not fit the vocabulary or the row.
    """

    stream: ClassVar[str] = "mad.fuzzy"
    vocab_size: int = 16
    seq_len: int = 128
    max_key: int = 3
    max_value: int = 3

    def __post_init__(self) -> None:
        n_keys = (self.vocab_size - 1) // 2
        n_values = self.vocab_size - 1 - n_keys
        if not 1 <= self.max_key <= n_keys or not 1 <= self.max_value <= n_values:
            raise ValueError(
                f"max_key must be in [1, {n_keys}] and max_value in [1, {n_values}] at vocab_size "
                f"{self.vocab_size}, got {self.max_key} and {self.max_value}"
            )
        longest = self.max_key + self.max_value
        if self.seq_len < 2 * longest:
            raise ValueError(
                f"seq_len must be at least 2 * (max_key + max_value) = {2 * longest}, "
                f"got {self.seq_len}"
            )

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the pairs and lay them out."""
        train = split == "train"
        known: set[Motif] = set()
        tokens: list[int] = []
        answers: list[int] = []
        for key, value in self._pairs(rng, 1 if train else self.max_key):
            tokens += key + value
            answers += [IGNORE] * len(key)
            answers += value if key in known else [IGNORE] * len(value)
            known.add(key)
        padding = self.seq_len + 1 - len(tokens)  # one more than is read: the last is only answered
        padded = np.array([self.vocab_size - 1] * padding + tokens)
        asked = padded if train else np.array([IGNORE] * padding + answers)
        return padded[:-1], asked[1:]

    def _pairs(self, rng: np.random.Generator, min_key: int) -> list[tuple[Motif, Motif]]:
        n_keys = (self.vocab_size - 1) // 2
        most = self.seq_len // (min_key + 1)
        keys = _motifs(rng, most, 0, n_keys, min_key, self.max_key)
        values = _motifs(rng, most, n_keys, self.vocab_size - 1, 1, self.max_value)
        probe = keys[0], values[0]
        value_of = {keys[0]: values[0]}
        room = self.seq_len + 1 - 2 * len(probe[0] + probe[1])
        others = []
        for key, value in zip(keys[1:], values[1:], strict=True):
            if room < self.max_key + self.max_value:
                break
            others.append((key, value_of.setdefault(key, value)))
            room -= len(key) + len(value_of[key])
        place = rng.integers(len(others) + 1)
        return [*others[:place], probe, *others[place:], probe]


def _motifs(
    rng: np.random.Generator, n: int, low: int, high: int, min_size: int, max_size: int
) -> list[Motif]:
    orders = rng.permuted(np.tile(np.arange(low, high), (n, 1)), axis=1)[:, :max_size].tolist()
    sizes = rng.integers(min_size, max_size + 1, size=n).tolist()
    return [tuple(order[:size]) for order, size in zip(orders, sizes, strict=True)]


PROBLEM = FuzzyRecall
