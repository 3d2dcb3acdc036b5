"""A checkpoint under test: its model, the world it was trained in, and its untrained control."""

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
from orbits import protocols
from orbits.runs.digests import digest
from orbits.runs.result import Case
from worldmodel.models.checkpoint import SHAPE
from worldmodel.models.export import read_model
from worldmodel.models.gpt_world import world_model
from worldmodel.models.load import load_model
from worldmodel.models.orbit import ForceModel, OrbitModel
from worldmodel.probes.early import UNASKED
from worldmodel.world_model import can

OUTSIDE = "outside"
"""The arm of a model from outside (:mod:`worldmodel.probes.outside`)."""


KINDS = {"window": None, "predicts": "bins"}
"""Further settings that tell models apart, where they are not the usual ones."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint under test.

    Attributes:
        path: File of the checkpoint, or the folder of an exported model.
        model: The model, in evaluation mode.
        seed: Seed of its training data, by which trainings of one model are told apart.
        steps: Optimiser steps it was trained; None if it does not tell, as exported models.
        law: The force law of the world in which it is evaluated.
        batch_size: Sequences of each step, on all devices; None if it does not tell.
        named: Label and seed that it was given in tables; None for its own.
        labels: Labelled sequences of a force model; None where they were unlimited.
        scratch: A force model whose backbone started from random weights. Checkpoints from before
            they told it count as pre-trained.
    """

    path: Path
    model: OrbitModel
    seed: int
    steps: int | None
    law: str
    batch_size: int | None = None
    named: tuple[str, int] | None = None
    labels: int | None = None
    scratch: bool = False

    @classmethod
    def load(
        cls, path: str | Path, law: str | None = None, named: tuple[str, int] | None = None
    ) -> Checkpoint:
        """Read a checkpoint.

        Args:
            path: File of the checkpoint, or the folder of an exported model.
            law: The law of the world in which it is evaluated; None for its own.
            named: Label and seed in tables; None for the checkpoint's own.
        """
        content = read_model(path)
        model = load_model(path, content)
        if (reason := UNASKED.get(type(model).__name__)) is not None:
            raise ValueError(f"{path}: {reason}")
        assert isinstance(model, OrbitModel)
        data = content.get("datamodule_hyper_parameters", {})
        seed = data.get("seed", 0) if data.get("train_seed") is None else data["train_seed"]
        batch_size = data.get("batch_size")
        parts = content.get("world_size", 1) * content.get("accumulate_grad_batches", 1)
        own = protocols.get(model.hparams["protocol"], model.hparams["protocol_args"])
        world = dataclasses.replace(own, law=law or own.law)  # refuses an unknown law
        world.systems(0, "test", range(300))  # and one that does not bind these orbits
        return cls(
            path=Path(path),
            model=model.eval(),
            seed=int(seed if named is None else named[1]),
            steps=content.get("global_step"),
            batch_size=batch_size and batch_size * parts,
            law=world.law,
            named=named,
            labels=data.get("n_train") if isinstance(model, ForceModel) else None,
            scratch=isinstance(model, ForceModel)
            and content["hyper_parameters"].get("pretrained", "unknown") is None,
        )

    @property
    def sha256(self) -> str:
        """The checksum of its file or files."""
        return digest(self.path)

    @cached_property
    def trained_on(self) -> protocols.Protocol:
        """The world it was trained in."""
        return protocols.get(self.model.hparams["protocol"], self.model.hparams["protocol_args"])

    @cached_property
    def protocol(self) -> protocols.Protocol:
        """The world in which it is evaluated."""
        return dataclasses.replace(self.trained_on, law=self.law)

    @property
    def world(self) -> dict[str, Any]:
        """Protocol and overrides of the world in which it is evaluated, as plain data."""
        protocol = self.protocol
        overrides = {name: getattr(protocol, name) for name in protocols.OVERRIDES}
        return {"protocol": protocol.name, "protocol_args": overrides}

    @property
    def architecture(self) -> dict[str, Any]:
        """The hyper-parameters of its embedding and backbone, as plain data."""
        return self.model.architecture

    @property
    def own_name(self) -> str:
        """The name of its variant."""
        arguments = self.model.hparams["attention_args"] or {}
        return attention.label(self.model.hparams["attention"], **arguments)

    @property
    def variant(self) -> str:
        """Name of the checkpoint in tables."""
        return self.own_name if self.named is None else self.named[0]

    @property
    def arm(self) -> str:
        """The arm of its results: the purpose of its training."""
        arms = {
            "NextTokenModel": "pretrained",
            "ForceModel": "force head, scratch" if self.scratch else "force head",
            "StateModel": "state-trained",
        }
        return arms[type(self.model).__name__]

    @property
    def sizes(self) -> Mapping[str, Any]:
        """Sizes that tell models of one name apart: shape, input, points and bins."""
        return {
            **{name: self.model.hparams[name] for name in (*SHAPE, "input")},
            **{
                name: value
                for name, plain in KINDS.items()
                if (value := self.model.hparams.get(name)) not in (None, plain)
            },
            "n_points": self.trained_on.n_points,
            "n_bins": self.trained_on.n_bins,
        }

    @property
    def row(self) -> dict[str, Any]:
        """Columns that identify its results: the world, the model and the training."""
        return {
            "protocol": self.trained_on.name,
            "law": self.law,
            "trained_on": self.trained_on.law,
            "model": self.variant,
            "arm": self.arm,
            "size": ", ".join(f"{name} {value}" for name, value in self.sizes.items()),
            "steps": self.steps,
            "labels": self.labels,
            "seed": self.seed,
        }

    def case(self, kind: str, **setting: Any) -> Case:
        """Return the case of a result about it."""
        row = self.row
        return Case(
            study="probe",
            kind=kind,
            variant=self.variant,
            arm=self.arm,
            seed=self.seed,
            law=self.law,
            protocol=row["protocol"],
            setting={
                "trained_on": row["trained_on"],
                "size": row["size"],
                "trained_steps": self.steps,
                "trained_labels": self.labels,
                **setting,
            },
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of :meth:`load` beside the path, as plain data."""
        return {"law": self.law, "named": self.named}

    @property
    def inputs(self) -> dict[str, Path]:
        """The files that its answers depend on, by role."""
        return {"checkpoint": self.path}

    def can(self, ability: str) -> bool:
        """Tell whether its model answers: predict_next, force or hidden."""
        return can(world_model(self.model), ability)

    @property
    def leaks(self) -> str | None:
        """The reason why test sequences are not held out for it, or None."""
        if isinstance(self.model, ForceModel) and self.trained_on.label_leak:
            return "it was trained with label_leak=2 on labels of these very sequences"
        return None

    def control_seed(self, seed: int) -> int:
        """Return the seed of a control: another for the checkpoint of another training."""
        return int(np.random.SeedSequence((self.seed, seed)).generate_state(1)[0])

    def untrained(self, seed: int) -> OrbitModel:
        """Return a model of the same class, variant and shape with random weights."""
        lightning.seed_everything(self.control_seed(seed), verbose=False)
        return type(self.model)(**dict(self.model.hparams)).eval()

    def twins(self, seed: int) -> dict[str, Any]:
        """Return the untrained control by its arm; a model from outside may have none."""
        twin = self.untrained(seed)
        return {} if twin is None else {"untrained": twin}
