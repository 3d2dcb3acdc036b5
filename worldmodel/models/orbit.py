"""Models of orbits: next-token prediction, and regression of the force on the planet."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from orbits import protocols
from worldmodel.models.base import GPTModel
from worldmodel.models.checkpoint import SHAPE
from worldmodel.models.embedding import NOISY, OrbitEmbedding, OrbitInput
from worldmodel.models.export import read_model
from worldmodel.models.heads import ForceHead
from worldmodel.models.next_point import Predicts, next_point_head
from worldmodel.models.predictions import prediction_columns, read_rows

BACKBONE = ("protocol", "protocol_args", "input", "attention", "attention_args")
"""Hyper-parameters of a backbone, beside its shape and its window."""
LABELLING = ("target", "label_leak")
"""Overrides of the protocol that a backbone does not see; a head sees the target."""


class OrbitModel(GPTModel):
    """Embedding and backbone shared by the models on orbits.

    Args:
        protocol: A name of ``orbits.protocols.names()``.
        protocol_args: Overrides of the protocol: n_points, n_bins, target, law, label_leak.
        input: Embedding of rows: tokens, bin_centres or coordinates.
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
    head_names: ClassVar[tuple[str, ...]] = ()
    """Hyper-parameters of its head that must agree too, because weights of other ones may fit."""

    @property
    def reads_places(self) -> bool:
        """Whether it needs exact places beside tokens."""
        return self.embedding.kind == "coordinates"

    def setup(self, stage: str) -> None:
        """Refuse data without labels, or without the places it reads, before any work."""
        data = getattr(self.trainer, "datamodule", None)
        if data is None:
            return
        if self.needs_labels and data.hparams["population"] != "force":
            name = type(self).__name__
            raise ValueError(f"{name} needs labelled sequences: set data.population=force")
        if self.reads_places and data.hparams.get("path") is not None:
            raise ValueError(
                f"{data.hparams['path']} holds bins and no exact places: set "
                "model.input=bin_centres and model.predicts=bins, or leave out data.path"
            )

    def hidden(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the backbone's final hidden states, [B, T, width].

        The backbone reads noisy places where there are some
        (:class:`worldmodel.data.orbits.OrbitData`).
        """
        tokens, coordinates = (
            batch.get(f"{NOISY}{name}", batch[name]) for name in ("tokens", "coordinates")
        )
        return self.gpt(self.embedding(tokens, coordinates))

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
            path: Path of the checkpoint, for the message.
            checkpoint: Content, from :func:`worldmodel.models.checkpoint.read_checkpoint`.
            any_law: Accept one that was trained in the world of another force law.
            with_head: Its head is used too, so that the target must be the same.
        """
        # A shift is of what is asked, and of no training.
        unseen = {"shift", "label_leak"} if with_head else {"shift", *LABELLING}
        if any_law:
            unseen.add("law")
        names = (*BACKBONE, *SHAPE, "window", *(self.head_names if with_head else ()))
        self._refuse_unlike(path, checkpoint, names, partial(_seen, unseen=unseen))

    @property
    def architecture(self) -> dict[str, Any]:
        """The hyper-parameters by which another model takes its embedding and backbone."""
        found = {name: self.hparams[name] for name in (*BACKBONE, *SHAPE)}
        if self.hparams["window"] is not None:  # addresses of cells outlive the new setting
            found["window"] = self.hparams["window"]
        return found


class NextTokenModel(OrbitModel):
    """Predict the next row from the rows before it.

    Args:
        predicts: ``bins``: a distribution over the bins of each coordinate. ``mixture``: a density
            of each coordinate, a mixture of Gaussians. ``gaussian``: one Gaussian with one standard
            deviation for all rows, which is regression by least squares.
        **kwargs: As for :class:`OrbitModel`.
    """

    head_names = ("predicts",)

    def __init__(self, predicts: Predicts = "bins", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.head = next_point_head(predicts, self.gpt.width, self.layout)

    @property
    def reads_places(self) -> bool:
        """Whether it needs exact places: as input, or to be told the density of."""
        return super().reads_places or self.hparams["predicts"] != "bins"

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the head's output for rows 1 to T - 1, [B, T - 1, 2, ...].

        Logits of bins [B, T - 1, 2, n_bins], or the parameters of a density.
        """
        return self.head(self.hidden(batch)[:, :-1])

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the mean negative log-likelihood of a row (x and y together), in nats."""
        return 2 * self.head.loss(self(batch), *self._truth(batch))

    @staticmethod
    def _truth(batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the bins and places of rows 1 to T - 1."""
        return batch["tokens"][:, 1:], batch["coordinates"][:, 1:]


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
    """Return the number of labels per test sequence that a checkpoint's backbone has seen."""
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
