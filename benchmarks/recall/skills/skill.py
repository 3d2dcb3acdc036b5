"""The base of the problems of MAD, with their scores."""

from __future__ import annotations

import numpy as np

from benchmarks.recall.measures import (
    Integers,
    batch_macro_accuracy,
    macro_accuracy,
    micro_accuracy,
)
from benchmarks.recall.problem import Problem
from orbits.runs.result import Metric


class Skill(Problem):
    """A problem that is scored by the macro average over classes."""

    def measure(self, answers: Integers, split: str, seed: int, at: str) -> dict[str, Metric]:
        """Return the macro accuracy of all rows, the published mean over batches, the plain share.

        See :meth:`benchmarks.recall.problem.Problem.measure`.
        """
        n = len(answers)
        targets = self.examples(split, seed, np.arange(n)).targets
        return {
            f"acc@{at}": Metric(100 * macro_accuracy(answers, targets), n=n),
            "batch_macro_accuracy": Metric(100 * batch_macro_accuracy(answers, targets), n=n),
            "micro": Metric(100 * micro_accuracy(answers, targets), n=n),
        }
