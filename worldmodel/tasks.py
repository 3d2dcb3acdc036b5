"""What is trained on orbits: next-token prediction, and the force on the planet."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from orbits import protocols
from worldmodel.checkpoint import read_checkpoint, restored
from worldmodel.embedding import OrbitEmbedding, OrbitInput
from worldmodel.gpt_task import SHAPE, GPTTask, NonFiniteLoss
from worldmodel.heads import ForceHead, NextTokenHead
from worldmodel.text_task import TextTask
from worldmodel.token_task import TokenTask

__all__ = [
    "ForceTask",
    "NextTokenTask",
    "NonFiniteLoss",
    "OrbitTask",
    "load_task",
    "prediction_columns",
    "read_rows",
]

BACKBONE = ("protocol", "protocol_args", "input", "attention", "attention_args")
LABELLING = ("target", "label_leak")
"""Overrides of the protocol that a backbone does not see; a head sees the target."""


class OrbitTask(GPTTask):
    """Embedding and backbone shared by the tasks on orbits.

    Args:
        protocol: A name of ``orbits.protocols.names()``.
        protocol_args: Overrides of the protocol: n_points, n_bins, target, law, label_leak.
        input: How rows are embedded: tokens, bin_centres or coordinates.
        **kwargs: As for :class:`worldmodel.gpt_task.GPTTask`.
    """

    def __init__(
        self,
        protocol: str = "identifiable",
        protocol_args: dict[str, Any] | None = None,
        input: OrbitInput = "bin_centres",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.layout = protocols.get(protocol, protocol_args).tokens
        self.embedding = OrbitEmbedding(self.layout, self.gpt.width, input)

    needs_labels = False
    """Whether its data must be labelled sequences."""

    def setup(self, stage: str) -> None:
        """Refuse data without labels before any work.

        Raises:
            ValueError: The task needs labels, and the population is not ``force``.
        """
        data = getattr(self.trainer, "datamodule", None)
        if self.needs_labels and data is not None and data.hparams["population"] != "force":
            name = type(self).__name__
            raise ValueError(f"{name} needs labelled sequences: set data.population=force")

    def hidden(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the backbone's final hidden states, [B, T, width]."""
        return self.gpt(self.embedding(batch["tokens"], batch["coordinates"]))

    def check_checkpoint(self, path: str | Path, checkpoint: Mapping[str, Any]) -> None:
        """Refuse the checkpoint of another variant, shape, protocol or target.

        Raises:
            ValueError: It is one.
        """
        self.check_backbone(path, checkpoint, with_head=True)

    def check_backbone(
        self,
        path: str | Path,
        checkpoint: Mapping[str, Any],
        any_law: bool = False,
        with_head: bool = False,
    ) -> None:
        """Refuse a checkpoint whose backbone is another one than this task's.

        Args:
            path: Where it is, for the message.
            checkpoint: Of :func:`worldmodel.checkpoint.read_checkpoint`.
            any_law: Accept one that was trained in the world of another force law.
            with_head: Its head is used too, so that the target must be the same.

        Raises:
            ValueError: It holds another variant, protocol or shape.
        """
        unseen = {"label_leak"} if with_head else set(LABELLING)
        if any_law:
            unseen.add("law")
        self._refuse_unlike(path, checkpoint, (*BACKBONE, *SHAPE), partial(_seen, unseen=unseen))


class NextTokenTask(OrbitTask):
    """Predict the next row's bins from the rows before it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.head = NextTokenHead(self.gpt.width, self.layout)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return logits of rows 1 to T - 1, [B, T - 1, 2, n_bins]."""
        return self.head(self.hidden(batch)[:, :-1])

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the mean negative log-likelihood of a row (x and y together), in nats."""
        logits, targets = self(batch), batch["tokens"][:, 1:]
        return 2 * functional.cross_entropy(logits.flatten(0, 2), targets.flatten())


class ForceTask(OrbitTask):
    """Regress the force on the planet, at the rows where the data gives one.

    Args:
        direction_weight: Weight of the direction beside the standardised magnitude.
        freeze_backbone: Train the head alone.
        pretrained: Checkpoint whose backbone training starts from; None for scratch.
        **kwargs: As for :class:`OrbitTask`.
    """

    needs_labels = True

    def __init__(
        self,
        direction_weight: float = 0.3,
        freeze_backbone: bool = False,
        pretrained: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._loaded: str | None = None
        protocol = protocols.get(self.hparams["protocol"], self.hparams["protocol_args"])
        self.head = ForceHead(self.gpt.width, protocol.target)
        if freeze_backbone:
            for part in (self.gpt, self.embedding):
                part.requires_grad_(False)

    def setup(self, stage: str) -> None:
        """Refuse data without labels, and take the pre-trained backbone unless this is a resume.

        Raises:
            FileNotFoundError: There is no such checkpoint.
            ValueError: As :meth:`OrbitTask.setup` and :meth:`load_backbone`.
        """
        super().setup(stage)
        pretrained = self.hparams["pretrained"]
        if stage == "fit" and pretrained != self._loaded and not self.trainer.ckpt_path:
            self.load_backbone(pretrained)

    def load_backbone(self, path: str | Path, any_law: bool = False) -> None:
        """Take embedding and backbone from a checkpoint of the same variant and shape.

        The path is then the hyper-parameter ``pretrained``, by which checkpoints tell where their
        backbone comes from.

        Args:
            path: The checkpoint.
            any_law: Accept one that was pre-trained in the world of another force law.

        Raises:
            FileNotFoundError: There is no such checkpoint.
            ValueError: It is not a checkpoint, holds another variant, protocol or shape, or has
                seen leaked labels of test sequences that this model is not said to have seen.
        """
        checkpoint = read_checkpoint(path)
        self.check_backbone(path, checkpoint, any_law)
        if (leak := _learnt_leak(checkpoint)) not in (0, _label_leak(self.hparams)):
            raise ValueError(
                f"{path}: trained with label_leak={leak} on labels of test sequences; set "
                f"protocol_args.label_leak={leak}, or take another backbone"
            )
        for part in ("gpt", "embedding"):
            prefix = f"{part}."
            state = {
                key.removeprefix(prefix): value
                for key, value in checkpoint["state_dict"].items()
                if key.startswith(prefix)
            }
            getattr(self, part).load_state_dict(state)
        self.hparams["pretrained"] = self._loaded = str(path)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Remember where a resumed training's backbone came from."""
        super().on_load_checkpoint(checkpoint)
        held = checkpoint.get("hyper_parameters", {})
        self.hparams["pretrained"] = held.get("pretrained", self.hparams["pretrained"])

    def on_fit_start(self) -> None:
        """Set the head's scale from the labelled training sequences, unless it is restored."""
        if not self.trainer.ckpt_path:
            mean, std = self.trainer.datamodule.force_statistics()  # type: ignore[attr-defined]
            self.head.mean.fill_(mean)
            self.head.std.fill_(std)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the head's output at the read rows, [n, 3]."""
        return self.head(self.hidden(batch)[read_rows(batch)])

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        """Return the columns of a prediction file for the read rows of a batch."""
        magnitude, vector = self.head.physical(self(batch))
        return prediction_columns(batch, magnitude, vector)

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the error of the standardised magnitude and of the direction."""
        force = batch["force"][read_rows(batch)]
        return self.head.loss(self(batch), force, self.hparams["direction_weight"])


def load_task(path: str | Path) -> GPTTask:
    """Return the task of a checkpoint, of the class that wrote it.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As :func:`worldmodel.checkpoint.read_checkpoint`, or weights and settings do not
            belong together.
    """
    checkpoint = read_checkpoint(path)
    task: type[GPTTask]
    if "tokenizer" in checkpoint["hyper_parameters"]:
        task = TextTask
    elif "vocab_size" in checkpoint["hyper_parameters"]:
        task = TokenTask
    elif "head.state.weight" in checkpoint["state_dict"]:
        from worldmodel.state_task import StateTask  # imports this module

        task = StateTask
    else:
        task = ForceTask if "head.readout.weight" in checkpoint["state_dict"] else NextTokenTask
    return restored(task, checkpoint, path)


def read_rows(batch: dict[str, Tensor]) -> Tensor:
    """Return a mask [B, T] of the rows where a force is asked, which is where one is given."""
    return batch["force"].isfinite().all(dim=-1)


def _learnt_leak(checkpoint: Mapping[str, Any]) -> int:
    """Return how many labels of each test sequence a checkpoint's backbone was trained on."""
    has_force_head = "head.std" in checkpoint["state_dict"]  # nothing else learns from labels
    return _label_leak(checkpoint["hyper_parameters"]) if has_force_head else 0


def _label_leak(hyper_parameters: Mapping[str, Any]) -> int:
    return (hyper_parameters.get("protocol_args") or {}).get("label_leak", 0)


def _seen(hyper_parameters: Mapping[str, Any], name: str, unseen: Set[str]) -> Any:
    """Return what a backbone depends on of a hyper-parameter; empty counts as not given."""
    value = hyper_parameters.get(name)
    if name == "protocol_args":
        given = value or {}
        defaults = protocols.get(hyper_parameters["protocol"]).config() if given else {}
        value = {k: v for k, v in given.items() if k not in unseen and v != defaults.get(k)}
    return value or None


def prediction_columns(
    batch: dict[str, Tensor], magnitude: Tensor, vector: Tensor
) -> dict[str, Tensor]:
    """Return what symbolic regression and the figures need, one entry per read row.

    Args:
        batch: A batch of the ``force`` population with B sequences.
        magnitude: Predicted magnitudes, [n].
        vector: Predicted force vectors, [n, 2].

    Returns:
        sequence_id, step, r (AU), m1, m2 (solar masses), position relative to the star [n, 2]
        (AU), force and force_vector (true), force_predicted and force_vector_predicted (solar
        mass AU / year^2).
    """
    rows = read_rows(batch)
    sequence, row = rows.nonzero(as_tuple=True)
    state, force = batch["state"][rows], batch["force"][rows]
    return {
        "sequence_id": batch["sequence_id"][sequence],
        "step": (row - 1) // 2,
        "r": state[:, :2].norm(dim=-1),
        "m1": state[:, 4],
        "m2": state[:, 5],
        "position": state[:, :2],
        "force": force.norm(dim=-1),
        "force_vector": force,
        "force_predicted": magnitude,
        "force_vector_predicted": vector,
    }


def central_columns(batch: dict[str, Tensor], magnitude: Tensor) -> dict[str, Tensor]:
    """Return :func:`prediction_columns` for magnitudes [B, T] of forces that point at the star."""
    rows = read_rows(batch)
    at_star = -torch.nn.functional.normalize(batch["state"][..., :2], dim=-1)[rows]
    return prediction_columns(batch, magnitude[rows], magnitude[rows][:, None] * at_star)
