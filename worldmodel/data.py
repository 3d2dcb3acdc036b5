"""Batches for Lightning: what data modules share, and orbits made from (protocol, seed, index).

Training order is a pure function of the step, so a run resumed from a checkpoint sees the
batches it would have seen, and every rank of a distributed run computes its own share.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal

import lightning
import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from attention.checks import check_size
from orbits import protocols
from worldmodel.device_orbits import DeviceOrbits
from worldmodel.stopping import leave_to_parent
from worldmodel.symmetry import N_SYMMETRIES, images

Population = Literal["pretrain", "force"]
DeviceBatches = Literal["float64", "float32"]


class StepSampler(Sampler[list[int]]):
    """Batches of indices as a pure function of the optimiser step.

    With ``n_sequences`` set, epochs are permutations of [0, n_sequences), keyed by the seed;
    otherwise every sequence is new.

    Args:
        batch_size: Sequences per rank and step.
        n_sequences: How many different sequences there are, or None for an endless stream.
        seed: Seed of the permutations.
        first_step: Returns the step at which iteration starts, asked when it starts.
        rank: This process, of ``world_size``.
        world_size: Number of processes.
    """

    def __init__(
        self,
        batch_size: int,
        n_sequences: int | None,
        seed: int,
        first_step: Callable[[], int] = lambda: 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.batch_size, self.n_sequences, self.seed = batch_size, n_sequences, seed
        self.first_step, self.rank, self.world_size = first_step, rank, world_size

    def indices(self, step: int) -> list[int]:
        """Return this rank's trajectory indices at a step."""
        start = (step * self.world_size + self.rank) * self.batch_size
        places = np.arange(start, start + self.batch_size)
        if self.n_sequences is None:
            return places.tolist()
        epochs, offsets = np.divmod(places, self.n_sequences)
        chosen = np.empty_like(places)
        for epoch in np.unique(epochs):
            order = _order(self.seed, int(epoch), self.n_sequences)
            chosen[epochs == epoch] = order[offsets[epochs == epoch]]
        return chosen.tolist()

    def __iter__(self) -> Iterator[list[int]]:
        step = self.first_step()
        while True:
            yield self.indices(step)
            step += 1


@functools.lru_cache(maxsize=2)
def _order(seed: int, epoch: int, n_sequences: int) -> npt.NDArray[np.int64]:
    """Return the permutation of an epoch; kept, because all of its steps ask for it."""
    return np.random.default_rng((seed, epoch)).permutation(n_sequences)


LEAST = {
    **dict.fromkeys(("n_train", "n_val", "n_test", "batch_size", "eval_batch_size", "seq_len"), 1),
    **dict.fromkeys(("seed", "train_seed", "num_workers"), 0),
}
"""The least that sizes and seeds may be."""


class SequenceData(lightning.LightningDataModule, ABC):
    """Training batches by optimiser step; validation and test sequences in order.

    A subclass saves the hyper-parameters n_val, n_test, batch_size, eval_batch_size, seed,
    train_seed and num_workers, checks them by :meth:`check_sizes` and says in :meth:`sequences`
    what a sequence is.
    """

    n_train: int | None = None
    """Number of different training sequences; None for an endless stream."""

    def check_sizes(self) -> None:
        """Refuse a saved hyper-parameter below what it may be.

        Raises:
            ValueError: A size is below 1, or a seed or the number of workers below 0.
        """
        for label, least in LEAST.items():
            value = self.hparams.get(label)
            if value is not None:
                check_size(label, value, least)

    @abstractmethod
    def sequences(self, split: str, length: int) -> Dataset:
        """Return the first ``length`` sequences of a split, with batches by ``__getitems__``."""

    def training_sequences(self) -> Dataset:
        """Return what training draws from, of a length that counts only where ``n_train`` does."""
        return self.sequences("train", 2**62 if self.n_train is None else self.n_train)

    @property
    def train_seed(self) -> int:
        """Seed of the training sequences and of their order."""
        given = self.hparams["train_seed"]
        return self.hparams["seed"] if given is None else given

    def train_dataloader(self) -> DataLoader:
        """Return batches ordered by the optimiser step, from the step training stands at."""
        trainer, sequences = self.trainer, self.training_sequences()
        sampler = StepSampler(
            self.hparams["batch_size"],
            None if self.n_train is None else len(sequences),  # type: ignore[arg-type]
            self.train_seed,
            # Batches, of which an optimiser step may take several.
            first_step=lambda: (
                trainer.global_step * trainer.accumulate_grad_batches if trainer else 0
            ),
            rank=trainer.global_rank if trainer else 0,
            world_size=trainer.world_size if trainer else 1,
        )
        return DataLoader(
            sequences,
            batch_sampler=sampler,
            num_workers=self.hparams["num_workers"],
            collate_fn=_already_collated,
            worker_init_fn=leave_to_parent,
        )

    def val_dataloader(self) -> DataLoader:
        """Return the validation sequences in order."""
        return self._ordered(self.sequences("val", self.hparams["n_val"]))

    def test_dataloader(self) -> DataLoader:
        """Return the held-out test sequences in order."""
        return self._ordered(self.sequences("test", self.hparams["n_test"]))

    def _ordered(self, sequences: Dataset) -> DataLoader:
        return DataLoader(
            sequences,
            batch_size=self.hparams["eval_batch_size"],
            num_workers=self.hparams["num_workers"],
            collate_fn=_already_collated,
            worker_init_fn=leave_to_parent,
        )


def _already_collated(batch: Any) -> Any:
    return batch


class OrbitSequences(Dataset):
    """The sequences of one split; a batch of indices is made in one vectorised call.

    Of the ``force`` population, a force is given where it is asked and NaN elsewhere: at the
    planet's rows of the second half, once there is something to infer it from.

    Args:
        protocol: What is observed.
        population: ``pretrain`` or ``force``.
        split: The split.
        seed: Seed of the data.
        length: How many sequences there are.
        fine_tuning: Give no force but those that fine-tuning may see, and the few of held-out
            sequences wherever they are (:meth:`orbits.protocols.Protocol.label_mask`).
        whole: Give forces in the first half too, of which a reversed image makes its second.
    """

    def __init__(
        self,
        protocol: protocols.Protocol,
        population: str,
        split: str,
        seed: int,
        length: int,
        fine_tuning: bool = False,
        whole: bool = False,
    ) -> None:
        self.protocol, self.population, self.split = protocol, population, split
        self.seed, self.length, self.fine_tuning, self.whole = seed, length, fine_tuning, whole

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {name: value[0] for name, value in self.__getitems__([index]).items()}

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some indices: tokens int64, the rest float32."""
        batch = self.protocol.batch(self.seed, self.split, indices, self.population)
        if self.population == "force":
            force = batch["force"]
            if self.fine_tuning:
                force[~self.protocol.label_mask(self.split, indices)] = np.nan
            if not (self.whole or (self.fine_tuning and self.split == "test")):
                force[:, : _first_answer(force)] = np.nan
        return {
            name: torch.from_numpy(
                value.astype(np.float32 if value.dtype.kind == "f" else np.int64)
            )
            for name, value in batch.items()
        }


def _first_answer(force: npt.NDArray | torch.Tensor) -> int:
    """Return the first row [N, T, ...] of which a force may be asked."""
    return 1 + force.shape[1] // 2


class LeakedSequences(Dataset):
    """Training sequences, then held-out ones of which a few labels leaked into training."""

    def __init__(self, training: OrbitSequences, held_out: OrbitSequences) -> None:
        self.training, self.held_out = training, held_out

    def __len__(self) -> int:
        return len(self.training) + len(self.held_out)

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some indices, the training sequences first."""
        n = len(self.training)
        training = [index for index in indices if index < n]
        held_out = [index - n for index in indices if index >= n]
        parts = [
            part.__getitems__(chosen)
            for part, chosen in ((self.training, training), (self.held_out, held_out))
            if chosen
        ]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


class TrajectoryIndices(Dataset):
    """Indices alone, for sequences that are made on the device."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the batch of some indices, int64."""
        return {"sequence_id": torch.tensor(indices)}


class OrbitData(SequenceData):
    """Orbits of a protocol, for pre-training or for force fine-tuning.

    Args:
        protocol: A name of ``orbits.protocols.names()``.
        protocol_args: Overrides of the protocol: n_points, n_bins, target, law, label_leak.
            With ``label_leak`` 2, as published, fine-tuning also draws from the test sequences,
            with two labels each.
        population: ``pretrain`` for next-token prediction, ``force`` for labelled sequences.
        n_train: Number of training sequences; None streams new ones at every step. For
            ``force`` this is the label budget, leaked labels aside.
        n_val: Number of validation sequences.
        n_test: Number of held-out test sequences.
        batch_size: Sequences per step and device.
        eval_batch_size: Sequences per validation, test and prediction batch.
        seed: Seed of the data (the model's seed is ``seed_everything``).
        train_seed: Another seed for the training sequences and their order, so that repeated runs
            draw new training data and share the validation and test sequences; None for ``seed``.
        num_workers: DataLoader workers; 0 makes batches in the training process.
        device_batches: Make the training batches of ``pretrain`` on the trainer's device, in this
            precision: float64 gives the loader's tokens, float32 moves up to two in ten thousand
            by one bin. None makes them in the loader.
        images: Train on a random image of every labelled sequence (:mod:`worldmodel.symmetry`),
            a pure function of the training seed and the step.
    """

    def __init__(
        self,
        protocol: str = "identifiable",
        protocol_args: dict[str, Any] | None = None,
        population: Population = "pretrain",
        n_train: int | None = None,
        n_val: int = 256,
        n_test: int = 1000,
        batch_size: int = 64,
        eval_batch_size: int = 250,
        seed: int = 0,
        train_seed: int | None = None,
        num_workers: int = 0,
        device_batches: DeviceBatches | None = None,
        images: bool = False,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.check_sizes()
        self.protocol = protocols.get(protocol, protocol_args)
        self.protocol.check_seeds([seed, self.train_seed])
        self.n_train = n_train
        self._made_on: dict[torch.device, DeviceOrbits] = {}
        if images and population != "force":
            raise ValueError("images are of labelled sequences: set data.population=force")
        if images and self.protocol.label_leak:
            raise ValueError("images do not go with label_leak; set data.images=false")
        if images and self.protocol.n_points % 2:
            raise ValueError(
                f"images need an even n_points, got {self.protocol.n_points}; set data.images=false"
            )
        if device_batches is not None:
            if population == "force":
                raise ValueError("device_batches has no labels; leave it out for population=force")
            self._device_orbits(torch.device("cpu"))  # refuses what it cannot make

    def sequences(
        self, split: str, length: int, fine_tuning: bool = False, whole: bool = False
    ) -> OrbitSequences:
        """Return the first ``length`` sequences of a split."""
        seed = self.train_seed if split == "train" else self.hparams["seed"]
        population = self.hparams["population"]
        return OrbitSequences(self.protocol, population, split, seed, length, fine_tuning, whole)

    def training_sequences(self) -> Dataset:
        """Return what training draws from.

        Raises:
            ValueError: Labels leak into an unlimited number of others.
        """
        return self._training(whole=self.hparams["images"])

    def _training(self, whole: bool) -> Dataset:
        length = self.n_train or 2**62
        if self.hparams["device_batches"] is not None:
            return TrajectoryIndices(length)
        fine_tuning = self.hparams["population"] == "force"
        training = self.sequences("train", length, fine_tuning, whole)
        if not (fine_tuning and self.protocol.label_leak):
            return training
        if self.n_train is None:
            raise ValueError("label_leak needs a label budget: set n_train to a number")
        return LeakedSequences(training, self.sequences("test", self.hparams["n_test"], True))

    def on_after_batch_transfer(self, batch: dict[str, torch.Tensor], dataloader_idx: int) -> dict:
        """Make the sequences of a batch that came as indices; take images of labelled ones."""
        if "tokens" not in batch:
            indices = batch["sequence_id"]
            batch = {**batch, **self._device_orbits(indices.device).batch(indices)}
        if self.hparams["images"] and self.trainer and self.trainer.training:
            place = (self.train_seed, self.trainer.global_step, self.trainer.global_rank)
            draws = np.random.default_rng(place).integers(N_SYMMETRIES, size=len(batch["tokens"]))
            choice = torch.from_numpy(draws).to(batch["tokens"].device)
            batch = images(batch, choice, self.protocol.n_bins)
            batch["force"][:, : _first_answer(batch["force"])] = torch.nan
        return batch

    def _device_orbits(self, device: torch.device) -> DeviceOrbits:
        if device not in self._made_on:
            dtype = getattr(torch, self.hparams["device_batches"])
            self._made_on[device] = DeviceOrbits(
                self.protocol, "pretrain", "train", self.train_seed, device, dtype
            )
        return self._made_on[device]

    def force_statistics(self) -> tuple[float, float]:
        """Return mean and standard deviation of the labelled magnitudes, log or raw.

        They come from the labelled training sequences alone (the first 4096 of them).
        """
        n = min(self.n_train or 4096, 4096)
        labelled = self.protocol.batch(self.train_seed, "train", np.arange(n), "force")
        magnitude = np.linalg.norm(labelled["force"], axis=-1)
        magnitude = magnitude[np.isfinite(magnitude)]
        value = np.log(magnitude) if self.protocol.target == "log" else magnitude
        return float(value.mean()), float(value.std())

    def labelled_dataloader(self) -> DataLoader:
        """Return the training sequences once and in order, for read-outs that fit in closed form.

        Raises:
            ValueError: Training is unlimited (``n_train`` is null).
        """
        if self.n_train is None:
            raise ValueError("n_train must be a number to read the training sequences once")
        return self._ordered(self._training(whole=False))

    def predict_dataloader(self) -> DataLoader:
        """Return the held-out test sequences in order."""
        return self.test_dataloader()
