"""Multi-query associative recall: pairs of key and value, then queries of the keys.

Arora et al., "Zoology" (ICLR 2024), Figure 2; LSSAR (2026) and ZeroS (2025), Figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.recall.base import STOPPED, Headline, RecallStudy, recall_headline, share
from benchmarks.recall.gaps import draw_gaps
from benchmarks.recall.measures import IGNORE, Integers
from benchmarks.recall.problem import Problem
from benchmarks.recall.sweep import Exercise, Sweep
from orbits.runs.result import Result
from orbits.runs.settings import check_equally_many


@dataclass(frozen=True)
class MQAR(Problem):
    """Recall the value of each key that is seen again.

    The row starts with ``n_pairs`` pairs of key and value. After them, keys come back one by one
    among zeros; the target at a key is its value. Keys are drawn from 1 .. V/2 - 1 and values from
    V/2 .. V - 1, neither with repetition. Query j stands 2 g_j tokens after the pairs; the gaps g
    are drawn without repetition from 0 .. (L - 2 n_pairs) / 2 - 1, one after the other with p(g) ∝
    a (g + 1)^(a - 1), a = ``power``: small gaps are likely, like repeated pairs of words in text.
    Of a row's values one in ``n_pairs`` is right, and by places alone a few more (``blind.py``).

    Source: Arora et al., "Zoology" (arXiv:2312.04927); HazyResearch/zoology d88d6f5,
    zoology/data/multiquery_ar.py, whose rows depend on their number and on the process.

        >>> rows = MQAR(vocab_size=20, seq_len=12, n_pairs=2).examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [6, 18, 2, 19, 6, 0, 0, 0, 0, 0, 2, 0]
        >>> rows.targets[0].tolist()
        [-100, -100, -100, -100, 18, -100, -100, -100, -100, -100, 19, -100]

    Attributes:
        vocab_size: V, which need not exceed L as in zoology.
        seq_len: L, even, at least 4 ``n_pairs``.
        n_pairs: Pairs, each with one query.
        power: a > 0; at 1 the gaps are uniform.
        random_non_queries: Fill the zeros with random tokens of the whole vocabulary, keys among
            them, which have no target. zoology's class defaults to True, its Figure 2 to False.

    Raises:
        ValueError: The pairs do not fit the vocabulary or the row, or the power is not positive.
    """

    stream: ClassVar[str] = "mqar"
    least: ClassVar[str] = "4 * n_pairs = "
    vocab_size: int = 8192
    seq_len: int = 64
    n_pairs: int = 4
    power: float = 0.01
    random_non_queries: bool = False

    def __post_init__(self) -> None:
        n_keys = self.vocab_size // 2 - 1
        if not 1 <= self.n_pairs <= n_keys:
            most = f"{n_keys}], the keys of vocab_size {self.vocab_size}"
            raise ValueError(f"n_pairs must be in [1, {most}, got {self.n_pairs}")
        self.check_even_length(self.n_shown + 2 * self.n_pairs, self.least)
        if not self.power > 0:
            raise ValueError(f"power must be positive, got {self.power}")

    @property
    def n_shown(self) -> int:
        """Tokens before the first query may come."""
        return 2 * self.n_pairs

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw the pairs, the gaps and the filler."""
        half = self.vocab_size // 2
        keys = 1 + rng.choice(half - 1, self.n_pairs, replace=False)
        values = half + rng.choice(self.vocab_size - half, self.n_pairs, replace=False)
        shown, answers = self.shown(rng, keys, values)
        places = (self.seq_len - self.n_shown) // 2
        queries = self.n_shown + 2 * draw_gaps(rng, places, self.power, self.n_pairs)
        tokens, targets = np.zeros(self.seq_len, np.int64), np.full(self.seq_len, IGNORE)
        tokens[: self.n_shown], tokens[queries], targets[queries] = shown, keys, answers
        if self.random_non_queries:
            filler = tokens == 0
            tokens[filler] = rng.integers(self.vocab_size, size=np.count_nonzero(filler))
        return tokens, targets

    def shown(
        self, rng: np.random.Generator, keys: Integers, values: Integers
    ) -> tuple[Integers, Integers]:
        """Return the tokens before the queries, and the answer to each key."""
        return np.stack([keys, values], axis=1).reshape(-1), values


PROBLEM = MQAR


@dataclass(frozen=True)
class Recall(Sweep):
    """Settings of models and of their loads: rows of a length with a number of pairs.

    Attributes:
        vocab_size: Tokens: keys from the lower half, values from the upper.
        seq_lens: Length of each load.
        n_pairs: Key-value pairs of each load.
        n_train: Number of different training examples; None for new ones at every step.
        head_dims: Channels per head; with one head, the width of the model.
        lengths: Further lengths of the test, with the pairs of the training.
    """

    vocab_size: int = 256
    seq_lens: tuple[int, ...] = (32,)
    n_pairs: tuple[int, ...] = (4,)
    n_train: int | None = None
    head_dims: tuple[int, ...] = (64,)
    lengths: tuple[int, ...] = (64, 128, 256)

    def exercises(self) -> Iterator[Exercise]:
        """Yield each load at each width."""
        check_equally_many(self, "seq_lens", "n_pairs")
        for head_dim in self.head_dims:
            for length, pairs in zip(self.seq_lens, self.n_pairs, strict=True):
                lengths, load = (length, *self.lengths), f"{length}/{pairs}"
                tests = {f"{n}/{pairs}": MQAR(self.vocab_size, n, pairs) for n in lengths}
                setting = {"load": load, "width": self.n_head * head_dim}
                yield Exercise(tests[load], head_dim, self.n_train, tests, setting)


class MQARStudy(RecallStudy):
    """Multi-query associative recall."""

    name = "mqar"
    version = 2
    about = "Can a mixer look up what it saw: the value of each key that is asked?"
    Settings = Recall
    keys = ("load", "width", "variant", "lr", "weight_decay")
    metrics: ClassVar = {"accuracy": share("right answers, by length and pairs"), **STOPPED}

    def headline(self, results: Sequence[Result]) -> Headline:
        """Return the accuracy at the load of the training, beside that without a look-up."""
        length, pairs = map(int, results[0].case.get("load").split("/"))
        return recall_headline(MQAR, length, pairs, results[0].case.get("width"))


STUDY = MQARStudy()
