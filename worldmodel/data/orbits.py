"""Orbits made from (protocol, seed, index), for Lightning."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader

from orbits import protocols
from worldmodel.data.device import DeviceOrbits
from worldmodel.data.noise import check_noise, with_noisy_context
from worldmodel.data.sequences import SequenceData, Sequences
from worldmodel.data.symmetry import N_SYMMETRIES, images

Population = Literal["pretrain", "force"]
DeviceBatches = Literal["float64", "float32"]


class OrbitSequences(Sequences):
    """The sequences of one split; a batch of indices is made in one vectorised call.

    The ``force`` population has a force at the planet's rows of the second half, once there is
    something to infer it from, and NaN elsewhere.

    Args:
        protocol: What is observed.
        population: ``pretrain`` or ``force``.
        split: The split.
        seed: Seed of the data.
        length: How many sequences there are.
        fine_tuning: Give only the forces that fine-tuning may see, the few of held-out sequences
            included (:meth:`orbits.protocols.Protocol.label_mask`).
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
        super().__init__(length)
        self.protocol, self.population, self.split = protocol, population, split
        self.seed, self.fine_tuning, self.whole = seed, fine_tuning, whole

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
    """Return the first row of [N, T, ...] at which a force may be predicted."""
    return 1 + force.shape[1] // 2


class LeakedSequences(Sequences):
    """Training sequences, then held-out ones of which a few labels leaked into training."""

    def __init__(self, training: OrbitSequences, held_out: OrbitSequences) -> None:
        super().__init__(len(training) + len(held_out))
        self.training, self.held_out = training, held_out

    def __getitems__(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """Return the collated batch of some indices, the training sequences first."""
        n = len(self.training)
        training = [index for index in indices if index < n]
        held_out = [index - n for index in indices if index >= n]
        parts = [
            part.__getitems__(numbers)
            for part, numbers in ((self.training, training), (self.held_out, held_out))
            if numbers
        ]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


class TrajectoryIndices(Sequences):
    """Indices alone, for sequences that are made on the device."""

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
        device_batches: Make the training batches of ``pretrain`` on the trainer's device, in this
            precision: float64 gives the loader's tokens, float32 moves up to two in ten thousand
            by one bin. None makes them in the loader.
        context_noise: Standard deviation in AU of Gaussian noise on the observed places that a
            model reads in training (:mod:`worldmodel.data.noise`), a pure function of the training
            seed and the step. What it predicts, and all that is validated or asked, has none.
        images: Train on a random image of every labelled sequence
            (:mod:`worldmodel.data.symmetry`), a pure function of the training seed and the step.
        **kwargs: As for :class:`worldmodel.data.sequences.SequenceData`.
    """

    def __init__(
        self,
        protocol: str = "identifiable",
        protocol_args: dict[str, Any] | None = None,
        population: Population = "pretrain",
        n_train: int | None = None,
        device_batches: DeviceBatches | None = None,
        images: bool = False,
        context_noise: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.protocol = protocols.get(protocol, protocol_args)
        self.protocol.check_seeds([self.hparams["seed"], self.train_seed])
        self._check_population(population)
        self.n_train = n_train
        self._made_on: dict[torch.device, DeviceOrbits] = {}
        check_noise(context_noise)
        if context_noise and population == "force":
            raise ValueError("context_noise is of pre-training: leave it out for population=force")
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

    def _check_population(self, population: str) -> None:
        known = self.protocol.populations
        if population not in known:
            under = f" under shift {shift.name!r}" if (shift := self.protocol.shift) else ""
            raise ValueError(
                f"protocol {self.protocol.name!r}{under} has no population {population!r}; set "
                f"data.population={known[0]}"
            )

    def setup(self, stage: str) -> None:
        """Refuse to train or validate on what a shift moves, before anything is written."""
        if stage in ("fit", "validate"):
            self.sequences("val", 1)

    def sequences(
        self, split: str, length: int, fine_tuning: bool = False, whole: bool = False
    ) -> OrbitSequences:
        """Return the first ``length`` sequences of a split; under a shift there is one.

        Raises:
            ValueError: A shift is asked about, and the split is not ``test``.
        """
        if (shift := self.protocol.shift) is not None and split != "test":
            raise ValueError(
                f"shift {shift.name!r} is asked and never trained or validated on; leave it out of "
                "data.protocol_args, or take predict or test"
            )
        seed = self.train_seed if split == "train" else self.hparams["seed"]
        population = self.hparams["population"]
        return OrbitSequences(self.protocol, population, split, seed, length, fine_tuning, whole)

    def training_sequences(self) -> Sequences:
        """Return the sequences that training draws from."""
        return self._training(whole=self.hparams["images"])

    def _training(self, whole: bool) -> Sequences:
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
        if (sd := self.hparams["context_noise"]) and self.trainer and self.trainer.training:
            first = int(batch["sequence_id"][0])  # accumulated batches share their step
            step = (self.train_seed, self.trainer.global_step, self.trainer.global_rank, first)
            batch = with_noisy_context(batch, sd, self.protocol.tokens, step)
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
        """Return the training sequences once and in order, for read-outs in closed form."""
        if self.n_train is None:
            raise ValueError("n_train must be a number to read the training sequences once")
        return self._ordered(self._training(whole=False))

    def predict_dataloader(self) -> DataLoader:
        """Return the held-out test sequences in order."""
        return self.test_dataloader()
