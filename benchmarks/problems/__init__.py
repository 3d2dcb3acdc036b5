"""Synthetic problems whose answers are known: what a sequence model can recall, copy or infer.

A problem is a frozen dataclass of its settings. ``examples(split, seed, indices)`` is a pure
function: a row depends on the settings, the split, the seed and its own index, never on the rows
made before or beside it, so any worker can make any row. Every row has a random stream of its own,
and no two splits or kinds of problem share one; two settings of one kind do.

    >>> import numpy as np
    >>> from benchmarks.problems.mqar import MQAR
    >>> problem = MQAR(vocab_size=20, seq_len=8, n_pairs=2)
    >>> whole = problem.examples("train", seed=0, indices=np.arange(100))
    >>> alone = problem.examples("train", seed=0, indices=np.array([42]))
    >>> bool((whole.tokens[42] == alone.tokens[0]).all())
    True
"""

from benchmarks.problems.examples import IGNORE, SPLITS, Examples, Integers, Problem
from benchmarks.problems.measures import (
    batch_macro_accuracy,
    macro_accuracy,
    micro_accuracy,
    random_answers,
    right_by_row,
    whole_by_row,
)

__all__ = [
    "IGNORE",
    "SPLITS",
    "Examples",
    "Integers",
    "Problem",
    "batch_macro_accuracy",
    "macro_accuracy",
    "micro_accuracy",
    "random_answers",
    "right_by_row",
    "whole_by_row",
]
