"""Recall at several lengths and loads in one training set."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.problems.examples import IGNORE, Examples, Integers, row_numbers
from benchmarks.problems.mqar import MIXTURE_TRAIN, MQAR


@dataclass(frozen=True)
class MQARMixture:
    """Zoology's later training set of MQAR, and what a model of it is tested on.

    The problems' rows are mixed evenly: any run of indices holds them in about their shares, and
    as many indices as there are rows hold them exactly. Shorter rows are padded on the right with
    token 0, which nothing is asked of and which a causal model never looks at.

    Source: HazyResearch/zoology d88d6f5, mqar_example_configs/original_mqar_configs.py, where
    batches hold rows of one length each.

        >>> problem = MQARMixture(vocab_size=64, seq_lens=(8, 12), n_pairs=(1, 2), rows=(3, 1))
        >>> rows = problem.examples("train", 0, np.arange(4))
        >>> (rows.targets != IGNORE).sum(axis=1).tolist()
        [1, 2, 1, 1]

    Attributes:
        vocab_size: Tokens of every problem.
        seq_lens: Length of each problem.
        n_pairs: Key-value pairs of each problem.
        rows: Rows of each problem.

    Raises:
        ValueError: A problem cannot be, or the three are not equally many.
    """

    vocab_size: int = 8192
    seq_lens: tuple[int, ...] = tuple(problem.seq_len for problem, _ in MIXTURE_TRAIN)
    n_pairs: tuple[int, ...] = tuple(problem.n_pairs for problem, _ in MIXTURE_TRAIN)
    rows: tuple[int, ...] = tuple(rows for _, rows in MIXTURE_TRAIN)

    def __post_init__(self) -> None:
        if not len(self.seq_lens) == len(self.n_pairs) == len(self.rows) >= 1:
            raise ValueError(
                "seq_lens, n_pairs and rows must be equally many, got "
                f"{len(self.seq_lens)}, {len(self.n_pairs)} and {len(self.rows)}"
            )
        if min(self.rows) < 1:
            raise ValueError(f"rows must be at least 1 each, got {min(self.rows)}")
        _ = self.problems  # refuses what cannot be

    @property
    def problems(self) -> tuple[MQAR, ...]:
        """The problems."""
        sizes = zip(self.seq_lens, self.n_pairs, strict=True)
        return tuple(MQAR(self.vocab_size, length, pairs) for length, pairs in sizes)

    @property
    def seq_len(self) -> int:
        """Tokens of the longest problem."""
        return max(self.seq_lens)

    def examples(self, split: str, seed: int, indices: Integers) -> Examples:
        """Return one row per index; see :class:`benchmarks.problems.Problem`."""
        numbers = np.array(row_numbers(indices), np.int64)
        ends = np.cumsum(self.rows)
        # Steps of the golden section visit all places once and never stay near one.
        total = int(ends[-1])
        step = next(s for s in range(int(0.618 * total), 2 * total) if math.gcd(s, total) == 1)
        belongs = np.searchsorted(ends, numbers % total * step % total, side="right")
        tokens = np.zeros((len(numbers), self.seq_len), np.int64)
        targets = np.full_like(tokens, IGNORE)
        for place, problem in enumerate(self.problems):
            chosen = belongs == place
            made = problem.examples(split, seed, numbers[chosen])
            tokens[chosen, : problem.seq_len] = made.tokens
            targets[chosen, : problem.seq_len] = made.targets
        return Examples(tokens, targets)
