"""Multi-query associative recall: many keys are shown with their values, then asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.problems.examples import IGNORE, Examples, Integers, collect, generators


@dataclass(frozen=True)
class MQAR:
    """Answer with the value of each key that is seen again.

    The row starts with ``n_pairs`` pairs of key and value. After them, keys come back one by one
    among zeros; the value is asked for at the key itself. Keys are drawn from 1 .. V/2 - 1 and
    values from V/2 .. V - 1, neither with repetition. Query j stands 2 g_j tokens after the pairs;
    the gaps g are drawn without repetition from 0 .. (L - 2 n_pairs) / 2 - 1, one after the other
    with p(g) ∝ a (g + 1)^(a - 1), a = ``power``: small gaps are likely, as repeated pairs of
    words are in text.

    Source: Arora et al., "Zoology" (arXiv:2312.04927); HazyResearch/zoology d88d6f5,
    zoology/data/multiquery_ar.py. There one call seeds numpy's global generator and fills the
    zeros from torch's, so that a row depends on the number of rows and on the process; here every
    row has its own stream.

    Measure: :func:`benchmarks.problems.right_by_row`. A reader of the pairs answers all; a model
    that only knows which values occur in the row answers one in ``n_pairs``.

        >>> rows = MQAR(vocab_size=20, seq_len=12, n_pairs=2).examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [6, 18, 2, 19, 6, 0, 0, 0, 0, 0, 2, 0]
        >>> rows.targets[0].tolist()
        [-100, -100, -100, -100, 18, -100, -100, -100, -100, -100, 19, -100]

    Attributes:
        vocab_size: V. zoology asks for V > L, which nothing needs: a model of few tokens may be
            tested on longer rows than it was trained on.
        seq_len: L, even, at least 4 ``n_pairs``.
        n_pairs: Pairs shown, all of which are asked for.
        power: a > 0; at 1 the gaps are uniform.
        random_non_queries: Fill the zeros with random tokens of the whole vocabulary, keys among
            them, which ask for nothing. zoology's class defaults to True; its Figure 2 sets False.

    Raises:
        ValueError: The pairs do not fit the vocabulary or the row, or another setting is bad.
    """

    vocab_size: int = 8192
    seq_len: int = 64
    n_pairs: int = 4
    power: float = 0.01
    random_non_queries: bool = False

    def __post_init__(self) -> None:
        n_keys = self.vocab_size // 2 - 1
        if not 1 <= self.n_pairs <= n_keys:
            raise ValueError(
                f"n_pairs must be in [1, {n_keys}], the keys of vocab_size {self.vocab_size}, "
                f"got {self.n_pairs}; take fewer pairs or a larger vocabulary"
            )
        if self.seq_len % 2 or self.seq_len < 4 * self.n_pairs:
            raise ValueError(
                f"seq_len must be even and at least 4 * n_pairs = {4 * self.n_pairs}, "
                f"got {self.seq_len}"
            )
        if not self.power > 0:
            raise ValueError(f"power must be positive, got {self.power}")

    @property
    def gap_probabilities(self) -> npt.NDArray[np.float64]:
        """The p(g) of the first query, [(L - 2 n_pairs) / 2]."""
        gaps = np.arange(1, (self.seq_len - 2 * self.n_pairs) // 2 + 1)
        weights = self.power * gaps ** (self.power - 1)
        return weights / weights.sum()

    def examples(self, split: str, seed: int, indices: Integers) -> Examples:
        """Return one row per index; see :class:`benchmarks.problems.Problem`."""
        probabilities = self.gap_probabilities
        half, context = self.vocab_size // 2, 2 * self.n_pairs

        def row(rng: np.random.Generator) -> tuple[Integers, Integers]:
            keys = 1 + rng.choice(half - 1, self.n_pairs, replace=False)
            values = half + rng.choice(self.vocab_size - half, self.n_pairs, replace=False)
            # An exponential race: g arrives at rate p(g), so the order of arrival is that of draws.
            arrivals = rng.standard_exponential(len(probabilities)) / probabilities
            gaps = np.argsort(arrivals)[: self.n_pairs]
            tokens = np.zeros(self.seq_len, np.int64)
            targets = np.full(self.seq_len, IGNORE)
            tokens[0:context:2], tokens[1:context:2] = keys, values
            queries = context + 2 * gaps
            tokens[queries], targets[queries] = keys, values
            if self.random_non_queries:
                filler = tokens == 0
                tokens[filler] = rng.integers(self.vocab_size, size=np.count_nonzero(filler))
            return tokens, targets

        return collect(generators("mqar", split, seed, indices), row, self.seq_len)


FIGURE_2 = tuple(
    MQAR(seq_len=length, n_pairs=pairs)
    for length, pairs in ((64, 4), (128, 8), (256, 16), (512, 64))
)
"""Settings of Zoology's Figure 2, each trained on 100,000 rows and tested on 3,000."""

MIXTURE_TRAIN = tuple(
    (MQAR(seq_len=length, n_pairs=pairs), rows)
    for length, pairs, rows in (
        (64, 4, 100_000), (128, 8, 20_000), (256, 16, 20_000), (256, 32, 20_000), (256, 64, 20_000),
    )
)  # fmt: skip
"""Problems and rows of zoology's later training mixture (mqar_example_configs)."""

MIXTURE_TEST = tuple(
    (MQAR(seq_len=length, n_pairs=pairs), 1000)
    for length, pairs in (
        (64, 4), (64, 8), (64, 16), (128, 32), (256, 64), (512, 128), (1024, 256),
    )
)  # fmt: skip
"""Problems and rows it is tested on: longer rows and more pairs than were trained."""
