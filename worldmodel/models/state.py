"""A model trained on the true state: a reference for world models that have inferred it."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from orbits import protocols
from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import OrbitModel

COMPONENTS = ("x", "y", "vx", "vy", "log_m1", "log_m2")
"""Predicted components: position (AU) and velocity (AU / year) of the planet relative to its star,
and the logarithms of both masses (solar masses)."""


def state_rows(batch: dict[str, Tensor]) -> Tensor:
    """Return a mask [B, T] of the rows that have a state, which are the planet's."""
    return batch["state"].isfinite().all(dim=-1)


def state_values(state: Tensor) -> Tensor:
    """Return :data:`COMPONENTS` of states as :meth:`orbits.protocols.Protocol.observe` gives them.

    Args:
        state: Position, velocity, planet mass, star mass, [..., 6].

    Returns:
        The same with both masses in logarithms, [..., 6].
    """
    return torch.cat([state[..., :4], state[..., 4:].log()], dim=-1)


class StateHead(nn.Module):
    """The state as six standardised numbers.

    ``mean`` and ``std`` [6] of the labelled training sequences are buffers: they travel in the
    checkpoint, so a reloaded head predicts in physical units.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.state = nn.Linear(width, len(COMPONENTS))
        nn.init.zeros_(self.state.weight)
        nn.init.zeros_(self.state.bias)
        self.register_buffer("mean", torch.zeros(len(COMPONENTS)))
        self.register_buffer("std", torch.ones(len(COMPONENTS)))

    def standardise(self, state: Tensor) -> Tensor:
        """Map states [n, 6] to the head's unit-variance scale."""
        return (state_values(state) - self.mean) / self.std

    def physical(self, output: Tensor) -> Tensor:
        """Return :data:`COMPONENTS` [n, 6] in their units."""
        return output * self.std + self.mean

    def forward(self, hidden: Tensor) -> Tensor:
        """Map hidden states [n, width] to [n, 6]."""
        return self.state(hidden)


class StateModel(OrbitModel):
    """Regress the true state at every row of the planet (Vafa et al. 2025, "state" pre-training).

    The state-trained model of the inductive-bias probe: its inductive bias towards the state is
    what next-token prediction is compared with. Its data need the population ``force``.

    Args:
        **kwargs: As for :class:`OrbitModel`.

    Raises:
        ValueError: The protocol leaks labels. Leaked sequences carry a few forces, but the state
            at every row.
    """

    needs_labels = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        leak = protocols.get(self.hparams["protocol"], self.hparams["protocol_args"]).label_leak
        if leak:
            raise ValueError(f"StateModel needs protocol_args.label_leak=0, got {leak}")
        self.head = StateHead(self.gpt.width)

    def setup(self, stage: str) -> None:
        """Make the data give the true state, even where a protocol publishes a wrong one."""
        super().setup(stage)
        data = getattr(self.trainer, "datamodule", None)
        if data is not None and data.protocol.as_published:
            if data.hparams.get("path") is not None:
                raise ValueError(
                    f"{data.hparams['path']} holds states as published, not the true ones: leave "
                    "out data.path"
                )
            data.protocol = dataclasses.replace(data.protocol, as_published=False)

    def on_fit_start(self) -> None:
        """Set the head's scale from the labelled training sequences, unless it is restored."""
        if not self.trainer.ckpt_path:
            mean, std = state_statistics(self.trainer.datamodule)  # type: ignore[attr-defined]
            self.head.mean.copy_(mean)
            self.head.std.copy_(std)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the standardised state at the planet's rows, [n, 6]."""
        return self.head(self.hidden(batch)[state_rows(batch)])

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the mean squared error of the standardised state."""
        return functional.mse_loss(
            self(batch), self.head.standardise(batch["state"][state_rows(batch)])
        )


def state_statistics(data: OrbitData) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation [6] of the states that training sees.

    They come from the labelled training sequences alone (the first 4096 of them).
    """
    n = min(data.n_train or 4096, 4096)
    batch = data.sequences("train", n).as_batch()
    values = state_values(batch["state"][state_rows(batch)]).double()
    return values.mean(dim=0), values.std(dim=0)
