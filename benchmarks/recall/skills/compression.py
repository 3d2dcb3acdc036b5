"""Compression: a row of random tokens must fit into one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.recall.measures import Integers
from benchmarks.recall.skills.skill import Skill
from orbits.runs.settings import check_at_least


@dataclass(frozen=True)
class Compression(Skill):
    """Give back the whole row from the state at its last token.

    L - 1 random tokens 0 .. V - 2, then the compression token V - 1. The targets are the tokens
    themselves, the last one included.

    This is an autoencoder's problem and not a language model's: a causal model that answers at
    each position would only have to repeat what it has just read. The model must take its output
    at the last position, add a sine-cosine code of each position t to it, and decode token t from
    that sum with an MLP of two hidden layers.

    Source: athms/mad-lab 0f49a45, compression and mad/model/auto_encoder.py. There a noise mask is
    made and then not used, so there is none here.

        >>> rows = Compression(vocab_size=4, seq_len=8).examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [2, 1, 0, 2, 1, 0, 1, 3]
        >>> rows.targets[0].tolist()
        [2, 1, 0, 2, 1, 0, 1, 3]

    Attributes:
        vocab_size: V, at least 2.
        seq_len: L, at least 2.

    Raises:
        ValueError: A setting is bad; the message names it.
    """

    stream: ClassVar[str] = "mad.compression"
    learner: ClassVar[str] = "compression"
    vocab_size: int = 16
    seq_len: int = 32

    def __post_init__(self) -> None:
        check_at_least(self, {"vocab_size": 2, "seq_len": 2})

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the tokens, which are the targets too."""
        last = self.vocab_size - 1
        tokens = np.append(rng.integers(last, size=self.seq_len - 1), last)
        return tokens, tokens


PROBLEM = Compression
