"""Models of orbits: next-token prediction, and regression of the force on the planet."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.nn import functional

from orbits import protocols
from worldmodel.models.base import SHAPE, GPTModel
from worldmodel.models.embedding import OrbitEmbedding, OrbitInput
from worldmodel.models.export import read_model
from worldmodel.models.heads import ForceHead, NextTokenHead
from worldmodel.models.predictions import prediction_columns, read_rows

BACKBONE = ("protocol", "protocol_args", "input", "attention", "attention_args")
LABELLING = ("target", "label_leak")
"""Overrides of the protocol that a backbone does not see; a head sees the target."""


class OrbitModel(GPTModel):
    """Embedding and backbone shared by the models on orbits.

    Args:
        protocol: A name of ``orbits.protocols.names()``.
        protocol_args: Overrides of the protocol: n_points, n_bins, target, law, label_leak.
        input: How rows are embedded: tokens, bin_centres or coordinates.
        **kwargs: As for :class:`worldmodel.models.base.GPTModel`.
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
        """Refuse data without labels before any work."""
        data = getattr(self.trainer, "datamodule", None)
        if self.needs_labels and data is not None and data.hparams["population"] != "force":
            name = type(self).__name__
            raise ValueError(f"{name} needs labelled sequences: set data.population=force")

    def hidden(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the backbone's final hidden states, [B, T, width]."""
        return self.gpt(self.embedding(batch["tokens"], batch["coordinates"]))

    def check_checkpoint(self, path: str | Path, checkpoint: Mapping[str, Any]) -> None:
        """Refuse the checkpoint of another variant, shape, protocol or target."""
        self.check_backbone(path, checkpoint, with_head=True)

    def check_backbone(
        self,
        path: str | Path,
        checkpoint: Mapping[str, Any],
        any_law: bool = False,
        with_head: bool = False,
    ) -> None:
        """Refuse a checkpoint whose backbone is another one than this model's.

        Args:
            path: Where it is, for the message.
            checkpoint: Of :func:`worldmodel.models.checkpoint.read_checkpoint`.
            any_law: Accept one that was trained in the world of another force law.
            with_head: Its head is used too, so that the target must be the same.
        """
        # A shift is of what is asked, and of no training.
        unseen = {"shift", "label_leak"} if with_head else {"shift", *LABELLING}
        if any_law:
            unseen.add("law")
        self._refuse_unlike(path, checkpoint, (*BACKBONE, *SHAPE), partial(_seen, unseen=unseen))


class NextTokenModel(OrbitModel):
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


class ForceModel(OrbitModel):
    """Regress the force on the planet, at the rows where the data gives one.

    Args:
        direction_weight: Weight of the direction beside the standardised magnitude.
        freeze_backbone: Train the head alone.
        pretrained: Checkpoint whose backbone training starts from; None for scratch.
        **kwargs: As for :class:`OrbitModel`.
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
        """Refuse data without labels, and take the pre-trained backbone unless this is a resume."""
        super().setup(stage)
        pretrained = self.hparams["pretrained"]
        if stage == "fit" and pretrained != self._loaded and not self.trainer.ckpt_path:
            self.load_backbone(pretrained)

    def load_backbone(self, path: str | Path, any_law: bool = False) -> None:
        """Take embedding and backbone from a checkpoint of the same variant and shape.

        An exported model serves as a checkpoint does.

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
        checkpoint = read_model(path)
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
        settings = checkpoint.get("hyper_parameters", {})
        self.hparams["pretrained"] = settings.get("pretrained", self.hparams["pretrained"])

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


def _learnt_leak(checkpoint: Mapping[str, Any]) -> int:
    """Return how many labels of each test sequence a checkpoint's backbone was trained on."""
    has_force_head = "head.std" in checkpoint["state_dict"]  # nothing else learns from labels
    return _label_leak(checkpoint["hyper_parameters"]) if has_force_head else 0


def _label_leak(hyper_parameters: Mapping[str, Any]) -> int:
    return (hyper_parameters.get("protocol_args") or {}).get("label_leak", 0)


def _seen(hyper_parameters: Mapping[str, Any], name: str, unseen: Set[str]) -> Any:
    """Return the part of a hyper-parameter that a backbone depends on, or None."""
    value = hyper_parameters.get(name)
    if name == "protocol_args":
        overrides = value or {}
        defaults = protocols.get(hyper_parameters["protocol"]).config() if overrides else {}
        value = {k: v for k, v in overrides.items() if k not in unseen and v != defaults.get(k)}
    return value or None
