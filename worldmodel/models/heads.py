"""The head of force models: magnitude and direction of the force on the planet."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class ForceHead(nn.Module):
    """Magnitude and direction of the force, one standardised number and one vector.

    ``mean`` and ``std`` (of the log or raw magnitude over the labelled training sequences) are
    buffers: they travel in the checkpoint, so a reloaded head predicts in physical units.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, width: int, target: str) -> None:
        super().__init__()
        if target not in ("log", "raw"):
            raise ValueError(f"unknown force target {target!r}; choose from log, raw")
        self.target = target
        self.readout = nn.Linear(width, 3)
        nn.init.zeros_(self.readout.weight)
        nn.init.zeros_(self.readout.bias)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))

    def standardise(self, magnitude: Tensor) -> Tensor:
        """Map magnitudes in solar mass AU / year^2 to the head's unit-variance scale."""
        value = magnitude.log() if self.target == "log" else magnitude
        return (value - self.mean) / self.std

    def loss(self, output: Tensor, force: Tensor, direction_weight: float) -> Tensor:
        """Return the squared error of the standardised magnitude plus that of the unit direction.

        Args:
            output: [n, 3] from :meth:`forward`.
            force: True force vectors, [n, 2].
            direction_weight: Weight of the second term.
        """
        magnitude = force.norm(dim=-1)
        size = functional.mse_loss(output[:, 0], self.standardise(magnitude))
        direction = functional.mse_loss(output[:, 1:], force / magnitude[:, None])
        return size + direction_weight * direction

    def physical(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Return magnitudes [n] and force vectors [n, 2] in solar mass AU / year^2."""
        value = output[:, 0] * self.std + self.mean
        magnitude = value.exp() if self.target == "log" else value
        return magnitude, magnitude[:, None] * functional.normalize(output[:, 1:], dim=-1)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map hidden states [n, width] to [n, 3]: standardised magnitude, direction."""
        return self.readout(hidden)
