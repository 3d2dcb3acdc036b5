"""A checkpoint that is probed: what it holds, what it was trained on, and what stands beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lightning
import numpy as np

import attention
from orbits import artefacts, protocols
from worldmodel.checkpoint import read_checkpoint
from worldmodel.named_checkpoint import named_checkpoint
from worldmodel.tasks import SHAPE, ForceTask, OrbitTask, load_task


@dataclass(frozen=True)
class Subject:
    """A checkpoint that is asked.

    Attributes:
        path: Its file.
        sha256: Its bytes.
        task: What it holds, in evaluation mode.
        seed: Seed of its training data, by which trainings of one model are told apart.
        steps: Optimiser steps it was trained.
        law: The force law of the world that is asked about.
        batch_size: Sequences of each step, on all devices; None if it does not tell.
        label: Its name in tables; None for that of its variant.
        labels: Labelled sequences of a force model; None where they were unlimited.
        scratch: A force model whose backbone started from random weights. Checkpoints from before
            they told it count as pre-trained.
    """

    path: Path
    sha256: str
    task: OrbitTask
    seed: int
    steps: int
    law: str
    batch_size: int | None = None
    label: str | None = None
    labels: int | None = None
    scratch: bool = False

    @classmethod
    def load(cls, given: str | Path, law: str | None = None) -> Subject:
        """Read a checkpoint.

        Args:
            given: Its file, or ``LABEL:SEED=PATH``.
            law: The law of the world that is asked about; None for its own.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is not a checkpoint of an orbit model, or there is no such law.
        """
        label, seed, path = named_checkpoint(given)
        checkpoint = read_checkpoint(path)
        task = load_task(path)
        if not isinstance(task, OrbitTask):
            raise ValueError(f"{path}: a model of text; probes ask models of orbits")
        data = checkpoint.get("datamodule_hyper_parameters", {})
        if seed is None:
            seed = data.get("train_seed")
        if seed is None:
            seed = data.get("seed", 0)
        batch_size = data.get("batch_size")
        own = protocols.get(task.hparams["protocol"], task.hparams["protocol_args"])
        world = dataclasses.replace(own, law=law or own.law)  # refuses an unknown law
        world.systems(0, "test", range(300))  # and one that does not bind these orbits
        return cls(
            path=path,
            sha256=artefacts.sha256(path),
            task=task.eval(),
            seed=int(seed),
            steps=int(checkpoint.get("global_step", 0)),
            batch_size=batch_size and batch_size * _batches_a_step(checkpoint),
            law=world.law,
            label=label,
            labels=data.get("n_train") if isinstance(task, ForceTask) else None,
            scratch=isinstance(task, ForceTask)
            and checkpoint["hyper_parameters"].get("pretrained", "unknown") is None,
        )

    @cached_property
    def trained_on(self) -> protocols.Protocol:
        """The world it was trained in."""
        return protocols.get(self.task.hparams["protocol"], self.task.hparams["protocol_args"])

    @cached_property
    def protocol(self) -> protocols.Protocol:
        """The world that is asked about."""
        return dataclasses.replace(self.trained_on, law=self.law)

    @property
    def protocol_args(self) -> dict[str, Any]:
        """Overrides that make the asked world of its protocol, for a data module."""
        return {**(self.task.hparams["protocol_args"] or {}), "law": self.law}

    @property
    def model(self) -> str:
        """Its name in tables."""
        if self.label is not None:
            return self.label
        arguments = self.task.hparams["attention_args"] or {}
        return attention.label(self.task.hparams["attention"], **arguments)

    @property
    def row(self) -> dict[str, Any]:
        """What tells its lines from those of others: the world, the model and the training."""
        arms = {
            "NextTokenTask": "pretrained",
            "ForceTask": "force head, scratch" if self.scratch else "force head",
            "StateTask": "state-trained",
        }
        return {
            "protocol": self.trained_on.name,
            "law": self.law,
            "trained_on": self.trained_on.law,
            "model": self.model,
            "arm": arms[type(self.task).__name__],
            "size": ", ".join(
                f"{name} {value}"
                for name, value in (
                    *((name, self.task.hparams[name]) for name in (*SHAPE, "input")),
                    ("n_points", self.trained_on.n_points),
                    ("n_bins", self.trained_on.n_bins),
                )
            ),
            "steps": self.steps,
            "labels": self.labels,
            "seed": self.seed,
        }

    @property
    def leaks(self) -> str | None:
        """Why its answers on test sequences are no answers on held-out ones, or None."""
        if isinstance(self.task, ForceTask) and self.trained_on.label_leak:
            return "it was trained with label_leak=2 on labels of these very sequences"
        return None

    def control_seed(self, seed: int) -> int:
        """Return the seed of a control: another for the checkpoint of another training."""
        return int(np.random.SeedSequence((self.seed, seed)).generate_state(1)[0])

    def untrained(self, seed: int) -> OrbitTask:
        """Return a model of the same class, variant and shape with random weights."""
        lightning.seed_everything(self.control_seed(seed), verbose=False)
        return type(self.task)(**dict(self.task.hparams)).eval()


def _batches_a_step(checkpoint: Mapping[str, Any]) -> int:
    return checkpoint.get("world_size", 1) * checkpoint.get("accumulate_grad_batches", 1)
