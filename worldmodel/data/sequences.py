"""The base of all data modules: batches as a function of the optimiser step.

Training order is a pure function of the step, so a run resumed from a checkpoint sees the
batches it would have seen, and every rank of a distributed run computes its own share.
"""

from __future__ import annotations

import atexit
import functools
import multiprocessing
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import lightning
import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from attention.scalars import check_size


class StepSampler(Sampler[list[int]]):
    """Batches of indices as a pure function of the optimiser step.

    With ``n_sequences`` set, epochs are permutations of [0, n_sequences), keyed by the seed;
    otherwise every sequence is new.

    Args:
        batch_size: Sequences per rank and step.
        n_sequences: Number of different sequences, or None for an endless stream.
        seed: Seed of the permutations.
        first_step: Returns the step at which iteration starts; called when it does.
        rank: This process, of ``world_size``.
        world_size: Number of processes.
        repeats: Times that a sequence stands in a row; an epoch, as long as ever, has that many
            fewer of them.
    """

    def __init__(
        self,
        batch_size: int,
        n_sequences: int | None,
        seed: int,
        first_step: Callable[[], int] = lambda: 0,
        rank: int = 0,
        world_size: int = 1,
        repeats: int = 1,
    ) -> None:
        self.repeats = repeats
        self.batch_size, self.n_sequences, self.seed = batch_size, n_sequences, seed
        self.first_step, self.rank, self.world_size = first_step, rank, world_size

    def indices(self, step: int) -> list[int]:
        """Return this rank's trajectory indices at a step."""
        start = (step * self.world_size + self.rank) * self.batch_size
        places = np.arange(start, start + self.batch_size)
        if self.n_sequences is None:
            return (places // self.repeats).tolist()
        epochs, offsets = np.divmod(places, self.n_sequences)
        numbers = np.empty_like(places)
        for epoch in np.unique(epochs):
            order = _order(self.seed, int(epoch), self.n_sequences)
            numbers[epochs == epoch] = order[offsets[epochs == epoch] // self.repeats]
        return numbers.tolist()

    def __iter__(self) -> Iterator[list[int]]:
        step = self.first_step()
        while True:
            yield self.indices(step)
            step += 1


@functools.lru_cache(maxsize=2)
def _order(seed: int, epoch: int, n_sequences: int) -> npt.NDArray[np.int64]:
    """Return the permutation of an epoch; kept, because all of its steps ask for it."""
    return np.random.default_rng((seed, epoch)).permutation(n_sequences)


class Sequences(Dataset, ABC):
    """A number of sequences; a batch of them is made in one call.

    Args:
        length: Number of sequences.
    """

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {name: value[0] for name, value in self.__getitems__([index]).items()}

    @abstractmethod
    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some indices."""

    def batches(self, size: int) -> Iterator[dict[str, torch.Tensor]]:
        """Yield all sequences in order, so many at once."""
        for start in range(0, len(self), size):
            yield self.__getitems__(list(range(start, min(start + size, len(self)))))

    def as_batch(self) -> dict[str, torch.Tensor]:
        """Return all sequences as one batch."""
        return self.__getitems__(list(range(len(self))))


LEAST = {
    **dict.fromkeys(("n_train", "n_val", "n_test", "batch_size", "eval_batch_size", "seq_len"), 1),
    **dict.fromkeys(("seed", "train_seed", "num_workers"), 0),
}
"""The smallest values of sizes and seeds."""


class SequenceData(lightning.LightningDataModule, ABC):
    """Training batches by optimiser step; validation and test sequences in order.

    A subclass says in :meth:`sequences` what a sequence is. Its arguments and these are saved as
    hyper-parameters. All data modules share them and their defaults, because the command line
    keeps the values of its default class when another one is chosen.

    Args:
        n_val: Largest number of validation sequences.
        n_test: Largest number of held-out test sequences.
        batch_size: Sequences per step and device.
        eval_batch_size: Sequences per validation, test and prediction batch.
        seed: Seed of the data (the model's seed is ``seed_everything``).
        train_seed: Another seed for the training sequences and their order, so that repeated runs
            draw new training data and share the validation and test sequences; None for ``seed``.
        num_workers: DataLoader workers; 0 makes batches in the training process.

    Raises:
        ValueError: A size is below 1, or a seed or the number of workers below 0.
    """

    def __init__(
        self,
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
        for label, least in LEAST.items():
            value = self.hparams.get(label)
            if value is not None:
                check_size(label, value, least)

    n_train: int | None = None
    """Number of different training sequences; None for an endless stream."""

    repeats: int = 1
    """Times that a training sequence stands in a row."""

    @abstractmethod
    def sequences(self, split: str, length: int) -> Sequences:
        """Return the first ``length`` sequences of a split, or all where there are fewer."""

    def training_sequences(self) -> Sequences:
        """Return the training sequences; their length is meaningless without ``n_train``."""
        return self.sequences("train", 2**62 if self.n_train is None else self.n_train)

    @property
    def train_seed(self) -> int:
        """Seed of the training sequences and of their order."""
        seed = self.hparams["train_seed"]
        return self.hparams["seed"] if seed is None else seed

    def train_dataloader(self) -> DataLoader:
        """Return batches ordered by the optimiser step, from the step training stands at."""
        trainer, sequences = self.trainer, self.training_sequences()
        sampler = StepSampler(
            self.hparams["batch_size"],
            None if self.n_train is None else len(sequences),
            self.train_seed,
            # Batches, of which an optimiser step may take several.
            first_step=lambda: (
                trainer.global_step * trainer.accumulate_grad_batches if trainer else 0
            ),
            rank=trainer.global_rank if trainer else 0,
            world_size=trainer.world_size if trainer else 1,
            repeats=self.repeats,
        )
        return DataLoader(
            sequences,
            batch_sampler=sampler,
            num_workers=self.hparams["num_workers"],
            collate_fn=already_collated,
            worker_init_fn=leave_to_parent,
        )

    def val_dataloader(self) -> DataLoader:
        """Return the validation sequences in order."""
        return self._ordered(self.sequences("val", self.hparams["n_val"]))

    def test_dataloader(self) -> DataLoader:
        """Return the held-out test sequences in order."""
        return self._ordered(self.sequences("test", self.hparams["n_test"]))

    def _ordered(self, sequences: Sequences) -> DataLoader:
        return DataLoader(
            sequences,
            batch_size=self.hparams["eval_batch_size"],
            num_workers=self.hparams["num_workers"],
            collate_fn=already_collated,
            worker_init_fn=leave_to_parent,
        )


def already_collated(batch: Any) -> Any:
    """Return a batch as it is: sequences come collated."""
    return batch


def joined(batches: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Return one after the other the tensors that batches have under the same names."""
    parts = list(batches)
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def as_tensors(batch: Mapping[str, npt.NDArray]) -> dict[str, torch.Tensor]:
    """Return the arrays of a batch as tensors: numbers float32, whole numbers int64."""
    return {
        name: torch.from_numpy(value.astype(np.float32 if value.dtype.kind == "f" else np.int64))
        for name, value in batch.items()
    }


def leave_to_parent(worker: int) -> None:
    """Ignore Ctrl-C and SIGTERM in a data loader's worker: its parent handles them.

    Both go to every process of a terminal's or a scheduler's group. The parent ends its workers
    when it stops, and one whose parent is gone ends by itself.

    Args:
        worker: Number of the worker, as ``worker_init_fn`` of a DataLoader is given it.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@atexit.register
def _end_workers() -> None:
    """End the workers of a loader that a program leaves before its last batch.

    Python ends its children with SIGTERM, which these ignore, and then waits for them.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch would tell of workers that were killed
    for worker in multiprocessing.active_children():
        if worker.daemon:
            worker.kill()
