"""Examples of a synthetic problem for Lightning."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from benchmarks.problems import Problem, catalogue
from worldmodel.data import SequenceData


class ProblemExamples(Dataset):
    """The first examples of a split, made when they are asked for.

    Args:
        problem: What makes them.
        split: ``train``, ``val`` or ``test``.
        seed: Seed of the data.
        length: Number of examples.
    """

    def __init__(self, problem: Problem, split: str, seed: int, length: int) -> None:
        self.problem, self.split, self.seed, self.length = problem, split, seed, length

    def __len__(self) -> int:
        return self.length

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some examples: tokens and targets, int64 [B, L]."""
        made = self.problem.examples(self.split, self.seed, np.asarray(indices, np.int64))
        return {"tokens": torch.from_numpy(made.tokens), "targets": torch.from_numpy(made.targets)}


class ProblemData(SequenceData):
    """Training, validation and test examples of a synthetic problem.

    Args:
        problem: A name of :mod:`benchmarks.problems.catalogue`.
        problem_args: Its settings.
        n_train: Number of different training examples; None for new ones at every step.
        n_val: Number of validation examples.
        n_test: Number of held-out test examples.
        batch_size: Examples per step and device.
        eval_batch_size: Examples per validation and test batch.
        seed: Seed of the held-out examples.
        train_seed: Seed of the training examples; None for ``seed``.
        num_workers: DataLoader workers.

    Raises:
        ValueError: An unknown problem, a setting it refuses, or a size below 1.
    """

    def __init__(
        self,
        problem: str,
        problem_args: dict[str, Any] | None = None,
        n_train: int | None = None,
        n_val: int = 256,
        n_test: int = 1000,
        batch_size: int = 64,
        eval_batch_size: int = 250,
        seed: int = 0,
        train_seed: int | None = None,
        num_workers: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.check_sizes()
        self.problem = catalogue.get(problem, **(problem_args or {}))
        self.n_train = n_train

    def sequences(self, split: str, length: int) -> ProblemExamples:
        """Return the first ``length`` examples of a split."""
        seed = self.train_seed if split == "train" else self.hparams["seed"]
        return ProblemExamples(self.problem, split, seed, length)
