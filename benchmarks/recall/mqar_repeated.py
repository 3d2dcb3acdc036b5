"""Recall after several passes: all pairs come again in their order before the first query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.recall.measures import Integers
from benchmarks.recall.mqar import MQAR
from orbits.runs.settings import check_at_least


@dataclass(frozen=True)
class Repeated(MQAR):
    """Recall of pairs that are shown ``n_passes`` times, see :class:`benchmarks.recall.mqar.MQAR`.

    A mixer of small state may choose what to keep when it has read all once.

    Source: Arora et al., "Just read twice" (arXiv:2407.05483); ``num_passes`` of
    HazyResearch/zoology d88d6f5, zoology/data/multiquery_ar.py, which fails for more than one.

        >>> rows = Repeated(vocab_size=20, seq_len=12, n_pairs=2).examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [4, 18, 1, 19, 4, 18, 1, 19, 1, 0, 4, 0]
        >>> rows.targets[0, 8:].tolist()
        [19, -100, 18, -100]

    Attributes:
        n_passes: How often the pairs are shown.
    """

    stream: ClassVar[str] = "mqar_repeated"
    least: ClassVar[str] = "2 * (n_passes + 1) * n_pairs = "
    n_passes: int = 2

    def __post_init__(self) -> None:
        check_at_least(self, {"n_passes": 1})
        super().__post_init__()

    @property
    def n_shown(self) -> int:
        """Tokens of all passes."""
        return 2 * self.n_pairs * self.n_passes

    def shown(
        self, rng: np.random.Generator, keys: Integers, values: Integers
    ) -> tuple[Integers, Integers]:
        """Return the pairs of all passes, and the values."""
        once, answers = super().shown(rng, keys, values)
        return np.tile(once, self.n_passes), answers


PROBLEM = Repeated
