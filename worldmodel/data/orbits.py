"""Orbits made from (protocol, seed, index), or read from files, for Lightning."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import torch
from torch.utils.data import DataLoader

from orbits import protocols
from orbits.dataset.read import OrbitDataset, read_index
from worldmodel.data import files
from worldmodel.data.device import DeviceOrbits
from worldmodel.data.noise import check_noise, with_noisy_context
from worldmodel.data.orbit_sequences import (
    LeakedSequences,
    OrbitSequences,
    TrajectoryIndices,
    first_answer,
)
from worldmodel.data.sequences import SequenceData, Sequences
from worldmodel.data.symmetry import N_SYMMETRIES, images

Population = Literal["pretrain", "force"]
DeviceBatches = Literal["float64", "float32"]


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
        path: A dataset of ``python -m orbits generate`` to read the sequences from, in place of
            making them. Its protocol, population and seed must be those given, as
            :meth:`from_files` and the command line see to; ``n_train`` is then the first so many
            of its training sequences, None all, and ``train_seed`` changes their order alone.
            Files hold bins and no exact places.
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
        path: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.protocol = protocols.get(protocol, protocol_args)
        if path is not None:
            self._check_files(path, device_batches, context_noise)
            n_train = files.counts(path).get("train") if n_train is None else n_train
            self.hparams["n_train"] = n_train
        self.protocol.check_seeds([self.hparams["seed"], self.train_seed])
        self._check_population(population)
        self.n_train = n_train
        self._made_on: dict[torch.device, DeviceOrbits] = {}
        check_noise(context_noise)
        if context_noise and population == "force":
            raise ValueError("context_noise is for pre-training: leave it out for population=force")
        if images and population != "force":
            fix = (
                "set data.population=force"
                if path is None
                else f"{path} holds none; take a dataset of population force"
            )
            raise ValueError(f"images are of labelled sequences: {fix}")
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

    @classmethod
    def from_files(cls, path: str, **kwargs: Any) -> Self:
        """Return the data of a dataset in files, with the world that its index tells.

        Args:
            path: The folder, as ``python -m orbits generate`` writes it.
            **kwargs: Other arguments, such as ``batch_size``.

        Raises:
            FileNotFoundError: The folder holds no finished dataset.
            ValueError: It cannot be read, or an argument is one that its files decide.
        """
        for name in files.DECIDED:
            if name in kwargs:
                raise ValueError(f"{path} decides {name}; leave it out")
        return cls(path=path, **files.settings(path), **kwargs)

    def _check_files(self, path: str, device_batches: object, context_noise: object) -> None:
        """Refuse another world than that of the files, and uses that need exact places."""
        theirs = files.settings(path)
        world = protocols.get(theirs["protocol"], theirs["protocol_args"])
        same = {name: self.hparams[name] == theirs[name] for name in ("population", "seed")}
        for name, agrees in {"protocol": self.protocol == world, **same}.items():
            if not agrees:
                raise ValueError(
                    f"{path} decides {name}, which is {theirs[name]!r}; take "
                    "OrbitData.from_files, or the same"
                )
        for name, value in (("device_batches", device_batches), ("context_noise", context_noise)):
            if value:
                raise ValueError(f"{name} needs orbits that are made: leave it out beside path")

    def _check_population(self, population: str) -> None:
        known = self.protocol.populations
        if population not in known:
            under = f" under shift {shift.name!r}" if (shift := self.protocol.shift) else ""
            raise ValueError(
                f"protocol {self.protocol.name!r}{under} has no population {population!r}; set "
                f"data.population={known[0]}"
            )

    def setup(self, stage: str) -> None:
        """Refuse to train or validate on shifted sequences, before anything is written.

        Files must hold the splits and as many training sequences as are asked for.
        """
        if stage in ("fit", "validate"):
            self.sequences("val", 1)
        if stage == "fit" and self.hparams["path"] is not None:
            self.sequences("train", self.n_train or 1)

    def state_dict(self) -> dict[str, Any]:
        """Return the hash of the files that are trained on, for the checkpoint."""
        return {"dataset_sha256": self._dataset_sha256} if self.hparams["path"] else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Refuse to resume training on other files; evaluating on them is allowed."""
        resumes = self.trainer is not None and self.trainer.state.fn == "fit"
        theirs, path = state_dict.get("dataset_sha256"), self.hparams["path"]
        if resumes and theirs is not None and path and theirs != self._dataset_sha256:
            raise ValueError(f"the checkpoint was trained on another dataset than {path}")

    @property
    def _dataset_sha256(self) -> str:
        return str(read_index(self.hparams["path"])["dataset_sha256"])

    def sequences(
        self, split: str, length: int, fine_tuning: bool = False, whole: bool = False
    ) -> OrbitSequences:
        """Return the first ``length`` sequences of a split; under a shift there is one.

        Where files hold fewer held-out sequences, all of them are returned.

        Raises:
            ValueError: A shift is asked about, and the split is not ``test``, or files hold no
                such split or too few training sequences.
        """
        if (shift := self.protocol.shift) is not None and split != "test":
            raise ValueError(
                f"shift {shift.name!r} is asked and never trained or validated on; leave it out of "
                "data.protocol_args, or take predict or test"
            )
        seed = self.train_seed if split == "train" else self.hparams["seed"]
        population, path = self.hparams["population"], self.hparams["path"]
        if path is not None:
            there = len(OrbitDataset(path, split))
            if split == "train" and length > there:
                raise ValueError(
                    f"n_train {length}: {path} has {there} training sequences; "
                    f"set --data.n_train={there} or fewer"
                )
            length = min(length, there)
        return OrbitSequences(
            self.protocol, population, split, seed, length, fine_tuning, whole, path
        )

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
            place = [self.train_seed, self.trainer.global_step, self.trainer.global_rank]
            if self.trainer.accumulate_grad_batches > 1:  # these batches share their step
                place.append(int(batch["sequence_id"][0]))
            draws = np.random.default_rng(place).integers(N_SYMMETRIES, size=len(batch["tokens"]))
            choice = torch.from_numpy(draws).to(batch["tokens"].device)
            batch = images(batch, choice, self.protocol.n_bins)
            batch["force"][:, : first_answer(batch["force"])] = torch.nan
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
        labelled = self.sequences("train", n).arrays(range(n))
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
