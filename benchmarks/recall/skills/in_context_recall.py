"""In-context recall and noisy recall: pairs of key and value, with noise between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.recall.measures import IGNORE, Integers
from benchmarks.recall.skills.skill import Skill


@dataclass(frozen=True)
class InContextRecall(Skill):
    """Answer with the value that a key had before in the row.

    The row is L/2 pairs. With the noise left out, n words make keys 0 .. n/2 - 1 and values
    n/2 .. n - 1; each row has a map of its own from keys to values, in which values may repeat,
    and each pair is a random key with its value. The last pair's key is one of those shown before,
    all equally likely. With noise, each other pair is replaced, with probability
    ``noise_fraction``, by two random noise tokens n .. V - 1; one randomly chosen pair is kept.

    Targets in ``train``: the next token everywhere, most of which nobody can know. In ``val`` and
    ``test``: the value, at every key that was shown before. A reader of the pairs answers all.

    Source: athms/mad-lab 0f49a45, in-context-recall and noisy-in-context-recall with
    ``multi_query``. There the last token is dropped and the row has L - 1 tokens; here it is kept
    without a target, which changes nothing for a causal model. There the pair that noise must
    spare may be the last, which has no noise anyway; here it is one of the others.

        >>> problem = InContextRecall(vocab_size=8, seq_len=12, noise_vocab_size=2,
        ...                           noise_fraction=0.3)
        >>> rows = problem.examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [1, 3, 2, 3, 1, 3, 7, 7, 0, 3, 2, 3]
        >>> rows.targets[0].tolist()
        [-100, -100, -100, -100, 3, -100, -100, -100, -100, -100, 3, -100]

    Attributes:
        vocab_size: V, noise tokens among them.
        seq_len: L, even, at least 4.
        noise_vocab_size: Noise tokens.
        noise_fraction: Probability that a pair is noise, in [0, 1).

    Raises:
        ValueError: A setting is bad; the message names it.
    """

    stream: ClassVar[str] = "mad.recall"
    vocab_size: int = 16
    seq_len: int = 128
    noise_vocab_size: int = 0
    noise_fraction: float = 0.0

    def __post_init__(self) -> None:
        self.check_even_length(4)
        if not 0 <= self.noise_fraction < 1:
            raise ValueError(f"noise_fraction must be in [0, 1), got {self.noise_fraction}")
        if self.noise_vocab_size < (self.noise_fraction > 0):
            raise ValueError(
                f"noise_fraction {self.noise_fraction} needs noise tokens, "
                f"got noise_vocab_size {self.noise_vocab_size}"
            )
        if self.vocab_size < self.noise_vocab_size + 2:
            raise ValueError(
                f"vocab_size must hold a key and a value beside {self.noise_vocab_size} noise "
                f"tokens, got {self.vocab_size}"
            )

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the row's map from keys to values, its pairs and its noise."""
        n_words, n_pairs = self.vocab_size - self.noise_vocab_size, self.seq_len // 2
        n_keys = n_words // 2
        value_of = rng.integers(n_keys, n_words, size=n_keys)
        keys = rng.integers(n_keys, size=n_pairs)
        noisy = rng.random(n_pairs) < self.noise_fraction
        noisy[rng.integers(n_pairs - 1)] = noisy[-1] = False
        keys[-1] = rng.choice(np.unique(keys[:-1][~noisy[:-1]]))
        pairs = np.stack([keys, value_of[keys]], axis=1)
        if noisy.any():
            pairs[noisy] = rng.integers(n_words, self.vocab_size, (noisy.sum(), 2))
        tokens = pairs.reshape(-1)
        targets = np.full(self.seq_len, IGNORE)
        if split == "train":
            targets[:-1] = tokens[1:]
        else:
            shown = np.flatnonzero(~noisy)
            first = np.unique(keys[shown], return_index=True)[1]
            again = np.delete(shown, first)
            targets[2 * again] = value_of[keys[again]]
        return tokens, targets


PROBLEM = InContextRecall
