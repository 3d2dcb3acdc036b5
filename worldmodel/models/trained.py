"""The base of all trained models: the optimiser, the checks for divergence, logging."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import lightning
import torch
from torch import Tensor, distributed

from attention.parts.selection import index_losses
from orbits.runs import plugins
from worldmodel.models import optim
from worldmodel.models.checkpoint import PLUGINS, without_paths


class NonFiniteLoss(FloatingPointError):
    """Training met a NaN or infinite loss; the message says where and why."""


class TrainedModel(lightning.LightningModule, ABC):
    """A model and how it is trained; a subclass adds the layers and the loss.

    It saves these as hyper-parameters: ``optimizer``, ``lr``, ``weight_decay``, ``warmup_steps``
    and ``min_lr_ratio``, as :class:`worldmodel.models.base.GPTModel` has them.
    """

    @abstractmethod
    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of training and validation."""

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        """Return the loss and log it as ``train_loss``; that of indexers, if there are any, beside.

        No gradient of the one reaches what the other trains (:mod:`attention.parts.selection`).
        """
        with index_losses(self) as of_indexers:
            loss = self.finite(self._loss(batch))
        self.log("train_loss", loss, prog_bar=True)
        if of_indexers:
            index_loss = self.finite(torch.stack(of_indexers).sum())
            self.log("train_index_loss", index_loss)
            loss = loss + index_loss
        return loss

    def log_mean(self, name: str, value: Tensor, n: int, prog_bar: bool = False) -> None:
        """Log a mean over n examples; the epoch's is over those of all devices."""
        self.log(name, value, prog_bar=prog_bar, batch_size=n, sync_dist=True)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Record how many batches made a step, on all devices, and the plug-ins of the training."""
        several = distributed.is_available() and distributed.is_initialized()
        checkpoint["world_size"] = distributed.get_world_size() if several else 1
        at_once = self._trainer.accumulate_grad_batches if self._trainer is not None else 1
        checkpoint["accumulate_grad_batches"] = at_once
        if files := plugins.addresses():
            checkpoint[PLUGINS] = files

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Drop paths of files, so that a resumed training writes to and deletes none of them."""
        if "callbacks" in checkpoint:
            checkpoint["callbacks"] = without_paths(checkpoint["callbacks"])

    def configure_optimizers(self) -> Any:
        """Return the optimiser with its schedule, stepped at every training step."""
        h = self.hparams
        total = self.trainer.max_steps
        if total < 1:
            raise ValueError("steps bound a training run: set trainer.max_steps")
        optimizer, schedule = optim.configure(
            self,
            h["optimizer"],
            lr=h["lr"],
            weight_decay=h["weight_decay"],
            warmup_steps=h["warmup_steps"],
            total_steps=total,
            min_lr_ratio=h["min_lr_ratio"],
        )
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Stop before a gradient that is not finite reaches the weights and a checkpoint.

        With ``16-mixed`` the gradient scaler skips such a step, and lowers its scale.
        """
        if getattr(self.trainer.precision_plugin, "scaler", None) is not None:
            return
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        if not torch.isfinite(torch.nn.utils.get_total_norm(gradients)):
            raise NonFiniteLoss(
                f"gradient is not finite at step {self.global_step}; the backward pass overflowed: "
                f"the learning rate {self.hparams['lr']} is likely too high. "
                "The last checkpoint is kept"
            )

    def finite(self, loss: Tensor) -> Tensor:
        """Return the loss, or stop training if it is not a number."""
        if torch.isfinite(loss):
            return loss
        broken = next((n for n, p in self.named_parameters() if not p.isfinite().all()), None)
        cause = (
            f"{broken} is not finite: the learning rate {self.hparams['lr']} is likely too high"
            if broken
            else "the weights are finite: the forward pass overflowed or a label is not finite"
        )
        raise NonFiniteLoss(
            f"loss is {float(loss)} at step {self.global_step}; {cause}. "
            "The last checkpoint is kept"
        )
