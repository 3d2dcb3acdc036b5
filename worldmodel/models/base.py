"""The base of models with a GPT: its backbone, and which checkpoints belong to it.

Hyper-parameters are plain data and travel in the checkpoint, so that a reloaded model is the same
variant and checkpoints load with ``weights_only=True``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from torch import Tensor
from torch.distributed.fsdp import FSDPModule, fully_shard

import attention as attention_variants
from worldmodel.models import optim
from worldmodel.models.backbone import GPT
from worldmodel.models.checkpoint import SHAPE
from worldmodel.models.export import read_export, write
from worldmodel.models.mlp import MLPName, NormName
from worldmodel.models.restored import restored
from worldmodel.models.trained import TrainedModel

if TYPE_CHECKING:
    AttentionName = str
else:
    # The choices of the command line: the catalogue and the linear mixers.
    AttentionName = Literal[attention_variants.names("all")]


EARLIER = {"mlp": "gelu", "norm": "layer", "window": None, "predicts": "bins"}
"""Values of hyper-parameters that checkpoints of earlier versions lack."""


class GPTModel(TrainedModel):
    """A GPT and how it is trained; a subclass adds the embedding, the head and the loss.

    Args:
        attention: The attention variant, or a linear mixer.
        attention_args: Arguments of the attention, for example ``{"p": 15}``.
        n_layer: Number of blocks.
        n_head: Heads per block.
        head_dim: Channels per head.
        mlp: The MLP of a block.
        norm: LayerNorm or RMSNorm.
        optimizer: ``muon`` (on block matrices, AdamW on the rest) or ``adamw``.
        lr: Largest learning rate; a cosine takes it to its minimum at ``trainer.max_steps``.
        min_lr_ratio: The minimum, as a share of ``lr``.
        window: Positions up to its own that each block attends to, beside the first one; none for
            all. Through n blocks a model sees 1 + n (window - 1) of the last positions.
        weight_decay: Decoupled weight decay, of matrices alone.
        warmup_steps: Steps of linear warm-up.

    Raises:
        ValueError: An unknown attention or optimizer, or a number out of range.
    """

    def __init__(
        self,
        attention: AttentionName = "softmax",
        attention_args: dict[str, Any] | None = None,
        n_layer: int = 2,
        n_head: int = 2,
        head_dim: int = 32,
        mlp: MLPName = "gelu",
        norm: NormName = "layer",
        optimizer: optim.OptimizerName = "muon",
        lr: float = 6e-3,
        weight_decay: float = 0.0,
        warmup_steps: int = 50,
        min_lr_ratio: float = 0.0,
        window: int | None = None,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        optim.check(optimizer)
        if not 0 <= min_lr_ratio <= 1:
            raise ValueError(f"min_lr_ratio must be in [0, 1], got {min_lr_ratio}")
        self.gpt = GPT(attention, attention_args, n_layer, n_head, head_dim, mlp, norm, window)

    def save_pretrained(
        self, folder: str | Path, about: str = "", provenance: Mapping[str, Any] | None = None
    ) -> Path:
        """Write the model's settings and weights, and a card, to a new folder in the hub's form.

        Args:
            folder: The folder, which must not be there (:mod:`worldmodel.models.export`).
            about: One sentence for the card: what it was trained on.
            provenance: Plain data on where it comes from, for example a manifest.

        Raises:
            FileExistsError: The folder exists.
        """
        if not about:
            world = self.hparams.get("protocol")
            on = f", trained on orbits of protocol `{world}`" if world else ""
            about = f"A {type(self).__name__} with the attention {self.hparams['attention']}{on}."
        return write(folder, self.hparams, self.state_dict(), about, provenance or {})

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Return the model of this class in a folder that :meth:`save_pretrained` wrote.

        :func:`worldmodel.models.load.load_model` finds the class by itself.

        Raises:
            FileNotFoundError: There is no such folder on this machine, or a file of it is missing.
            ValueError: A file is damaged, or it holds a model of another class.
        """
        return restored(cls, read_export(folder), folder)

    same: ClassVar[tuple[str, ...]] = ("attention", "attention_args", *SHAPE, "window")
    """Hyper-parameters that must agree, because weights of other ones may fit too."""

    def check_checkpoint(self, path: str | Path, checkpoint: Mapping[str, Any]) -> None:
        """Refuse the checkpoint of another model than this one, even if its weights would fit.

        Args:
            path: Where it is, for the message.
            checkpoint: Of :func:`worldmodel.models.checkpoint.read_checkpoint`.
        """
        self._refuse_unlike(
            path, checkpoint, self.same, lambda values, name: values.get(name) or None
        )

    def _refuse_unlike(
        self,
        path: str | Path,
        checkpoint: Mapping[str, Any],
        names: Iterable[str],
        value_of: Callable[[Mapping[str, Any], str], Any],
    ) -> None:
        """Refuse a checkpoint whose ``value_of(hyper-parameters, name)`` is not this model's."""
        theirs = {**EARLIER, **checkpoint["hyper_parameters"]}
        for name in names:
            if value_of(theirs, name) != value_of(self.hparams, name):
                raise ValueError(
                    f"{path}: trained with {name}={theirs.get(name)!r}, "
                    f"this model has {name}={self.hparams[name]!r}; take one that was trained so, "
                    "or leave out what changes it"
                )

    @abstractmethod
    def hidden(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the backbone's final hidden states, [B, T, width]."""

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        """Log ``val_loss``."""
        self.log_mean("val_loss", self._loss(batch), len(batch["tokens"]), prog_bar=True)

    def test_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        """Log ``test_loss``."""
        self.log_mean("test_loss", self._loss(batch), len(batch["tokens"]))

    def configure_model(self) -> None:
        """Shard blocks, embedding and head where Lightning's ModelParallelStrategy asks (FSDP2)."""
        mesh = self.device_mesh
        if mesh is None or isinstance(self, FSDPModule):  # fit and test call it once each
            return
        if (parallel := mesh["tensor_parallel"].size()) > 1:  # Lightning's default
            raise ValueError(
                f"tensor_parallel_size must be 1, got {parallel}: set trainer.strategy."
                f"data_parallel_size={mesh.size()} and trainer.strategy.tensor_parallel_size=1"
            )
        if self.hparams["optimizer"] != "adamw":
            raise ValueError("FSDP2 cannot save the state of Muon: set optimizer to adamw")
        for module in (*self.gpt.blocks, self):
            fully_shard(module, mesh=mesh["data_parallel"])
