"""Examples of a synthetic problem for Lightning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from benchmarks.learners import Learner, loader
from benchmarks.recall import problem as problems
from benchmarks.recall.measures import IGNORE
from worldmodel.data.sequences import SequenceData, Sequences
from worldmodel.models.text import TokenModel


class ProblemExamples(Sequences):
    """The first examples of a split, made on access.

    Args:
        problem: What makes them.
        split: ``train``, ``val`` or ``test``.
        seed: Seed of the data.
        length: Number of examples.
    """

    def __init__(self, problem: problems.Problem, split: str, seed: int, length: int) -> None:
        super().__init__(length)
        self.problem, self.split, self.seed = problem, split, seed

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some examples: tokens and targets, int64 [B, L].

        Rows that end in padding are cut after the last token that any of them asks for, which a
        causal model cannot tell.
        """
        made = self.problem.examples(self.split, self.seed, np.asarray(indices, np.int64))
        length = self.problem.seq_len
        if self.problem.padded:
            length = 1 + int(np.flatnonzero((made.targets != IGNORE).any(axis=0))[-1])
        return {
            "tokens": torch.from_numpy(made.tokens[:, :length]),
            "targets": torch.from_numpy(made.targets[:, :length]),
        }


class ProblemData(SequenceData):
    """Training, validation and test examples of a synthetic problem.

    Args:
        problem: A name of :func:`benchmarks.recall.problem.names`.
        problem_args: Its settings.
        n_train: Number of different training examples; None for new ones at every step.
        **kwargs: As for :class:`worldmodel.data.sequences.SequenceData`.

    Raises:
        ValueError: An unknown problem, a setting it refuses, or a size below 1.
    """

    def __init__(
        self,
        problem: str,
        problem_args: dict[str, Any] | None = None,
        n_train: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.problem = problems.get(problem, **(problem_args or {}))
        self.n_train = n_train

    def sequences(self, split: str, length: int) -> ProblemExamples:
        """Return the first ``length`` examples of a split."""
        seed = self.train_seed if split == "train" else self.hparams["seed"]
        return ProblemExamples(self.problem, split, seed, length)


def learner(kind: type[TokenModel]) -> Learner:
    """Return the learner whose models are of a class and have the vocabulary of the problem."""

    def model(data: Mapping[str, Any], **model: Any) -> TokenModel:
        return kind(ProblemData(**data).problem.vocab_size, **model)

    return Learner(model, ProblemData, loader(kind))


LEARNER = learner(TokenModel)
