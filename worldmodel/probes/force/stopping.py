"""Early stopping of force heads by held-out labels."""

from __future__ import annotations

import math
from typing import Any

import lightning
import torch
from torch import Tensor

from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import ForceModel

SHARE = 5
"""Share of labelled sequences that is held out: one in so many."""
CHECKS = 20
"""Number of checks on the held-out labels during a training, at equal distances."""


def held_out(data: OrbitData, labels: int) -> dict[str, Tensor]:
    """Take the last of the labelled sequences away from training and return them as a batch."""
    data.n_train = labels - max(1, labels // SHARE)
    return data.sequences("train", labels).__getitems__(list(range(data.n_train, labels)))


class BestOnHeldOut(lightning.Callback):
    """Keep the weights with the least loss on held-out labels, and end with them.

    Attributes:
        losses: The loss at each check.
    """

    def __init__(self, batch: dict[str, Tensor], steps: int) -> None:
        self.batch, self.every = batch, max(1, steps // CHECKS)
        self.losses: list[float] = []
        self._least = math.inf
        self._weights: dict[str, Tensor] = {}

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, *_: Any
    ) -> None:
        """Compare the loss with the least so far."""
        if trainer.global_step % self.every and trainer.global_step != trainer.max_steps:
            return
        assert isinstance(pl_module, ForceModel)
        batch = {name: value.to(pl_module.device) for name, value in self.batch.items()}
        with torch.no_grad():
            pl_module.eval()
            loss = float(pl_module._loss(batch))
            pl_module.train()
        self.losses.append(loss)
        if loss < self._least:
            weights = pl_module.state_dict()
            self._least, self._weights = loss, {k: v.clone() for k, v in weights.items()}

    def on_train_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        """Put the best weights back."""
        pl_module.load_state_dict(self._weights)
