"""Multi-query associative recall at several lengths and loads in one training set (zoology)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.recall.base import Headline, RecallStudy, recall_headline
from benchmarks.recall.measures import IGNORE
from benchmarks.recall.mqar import MQAR, MQARStudy
from benchmarks.recall.problem import Examples, Problem, row_numbers
from benchmarks.recall.sweep import Exercise, Sweep
from orbits.runs.result import Result
from orbits.runs.settings import check_at_least, check_equally_many, check_not_empty

TRAIN = (
    (64, 4, 100_000), (128, 8, 20_000), (256, 16, 20_000), (256, 32, 20_000), (256, 64, 20_000),
)  # fmt: skip
"""Lengths, pairs and rows of zoology's later training mixture (mqar_example_configs)."""
TEST = ((64, 4), (64, 8), (64, 16), (128, 32), (256, 64), (512, 128), (1024, 256))
"""Lengths and pairs that its models are tested at: longer rows and more pairs than in training."""


@dataclass(frozen=True)
class MQARMixture(Problem):
    """The later training set of zoology: rows of MQAR at several lengths and loads.

    The problems' rows are mixed evenly: any run of indices holds them in about their shares, and
    as many indices as there are rows hold them exactly. Shorter rows are padded on the right with
    token 0, which nothing is asked of and which a causal model never looks at.

    Source: HazyResearch/zoology d88d6f5, mqar_example_configs/original_mqar_configs.py, where
    batches hold rows of one length each.

        >>> mixture = MQARMixture(vocab_size=64, seq_lens=(8, 12), n_pairs=(1, 2), rows=(3, 1))
        >>> rows = mixture.examples("train", 0, np.arange(4))
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
    seq_lens: tuple[int, ...] = tuple(length for length, _, _ in TRAIN)
    n_pairs: tuple[int, ...] = tuple(pairs for _, pairs, _ in TRAIN)
    rows: tuple[int, ...] = tuple(rows for _, _, rows in TRAIN)

    def __post_init__(self) -> None:
        check_not_empty(self, "seq_lens")
        check_equally_many(self, "seq_lens", "n_pairs", "rows")
        check_at_least(self, {"rows": 1})
        _ = self.problems  # refuses what cannot be

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problem of each load."""
        sizes = zip(self.seq_lens, self.n_pairs, strict=True)
        return tuple(
            MQAR(self.vocab_size, length, pairs, random_non_queries=True) for length, pairs in sizes
        )

    @property
    def seq_len(self) -> int:
        """Tokens of the longest problem."""
        return max(self.seq_lens)

    def examples(self, split: str, seed: int, indices: npt.ArrayLike) -> Examples:
        """Return one row per index; see :class:`benchmarks.recall.problem.Problem`."""
        numbers = np.array(row_numbers(indices), np.int64)
        ends = np.cumsum(self.rows)
        # Steps of the golden section visit all places once and never stay near one.
        total = int(ends[-1])
        step = next(s for s in range(int(0.618 * total), 2 * total) if math.gcd(s, total) == 1)
        belongs = np.searchsorted(ends, numbers % total * step % total, side="right")
        tokens = np.zeros((len(numbers), self.seq_len), np.int64)
        targets = np.full_like(tokens, IGNORE)
        for place, each in enumerate(self.problems):
            chosen = belongs == place
            made = each.examples(split, seed, numbers[chosen])
            tokens[chosen, : each.seq_len] = made.tokens
            targets[chosen, : each.seq_len] = made.targets
        return Examples(tokens, targets)


PROBLEM = MQARMixture


@dataclass(frozen=True)
class Mixture(Sweep):
    """Settings of models that are trained on the mixture.

    Attributes:
        vocab_size: Tokens: keys from the lower half, values from the upper.
        head_dims: Channels per head; with one head, the width of the model.
    """

    vocab_size: int = 8192
    head_dims: tuple[int, ...] = (64,)

    def exercises(self) -> Iterator[Exercise]:
        """Yield the mixture at each width, with seven tests, the last two longer than training."""
        mixture = MQARMixture(self.vocab_size)
        tests = {
            f"{n}/{pairs}": MQAR(self.vocab_size, n, pairs, random_non_queries=True)
            for n, pairs in TEST
        }
        for head_dim in self.head_dims:
            setting = {"width": self.n_head * head_dim}
            yield Exercise(mixture, head_dim, sum(mixture.rows), tests, setting)


class MixtureStudy(RecallStudy):
    """Multi-query associative recall after training on a mixture of loads."""

    name = "mqar_mixture"
    about = "Does a mixer that learned recall at several lengths and loads recall beyond them?"
    Settings = Mixture
    metrics = MQARStudy.metrics
    keys = ("width", "variant", "lr", "weight_decay")

    def headline(self, results: Sequence[Result]) -> Headline:
        """Return the accuracy at the lightest load."""
        length, pairs = TEST[0]
        return recall_headline(MQAR, length, pairs, results[0].case.get("width"))


STUDY = MixtureStudy()
