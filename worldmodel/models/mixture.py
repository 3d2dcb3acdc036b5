"""World models trained on several laws, and one that is told the law of each sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from worldmodel.models.embedding import OrbitEmbedding
from worldmodel.models.orbit import NextTokenModel

WAVES = 4
SPAN = 6.0
"""Exponents over which the longest wave goes through half a period."""


class ToldEmbedding(OrbitEmbedding):
    """Embed an orbit's rows and, in the time-step row, the exponent of its law.

    The exponent stands where that row has no coordinate (:func:`worldmodel.data.mixture.tell`).
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.law = nn.Linear(1 + 2 * WAVES, self.time_step.embedding_dim)

    def forward(self, tokens: Tensor, coordinates: Tensor) -> Tensor:
        """Embed a batch, as :class:`OrbitEmbedding` does; coordinates [B, 0, 0] are exponents."""
        rows = super().forward(tokens, coordinates)
        exponent = coordinates[:, :1, :1].to(rows.dtype)
        phase = exponent * (math.pi / SPAN) * 2.0 ** torch.arange(WAVES, device=rows.device)
        law = self.law(torch.cat([exponent, phase.sin(), phase.cos()], dim=-1))
        return torch.cat([rows[:, :1] + law, rows[:, 1:]], dim=1)


class MixtureModel(NextTokenModel):
    """Predict the next row of sequences that each obey a law of their own.

    Args:
        exponents: Exponents of the distance in the laws of the training; they change no weight.
        told: Whether each sequence tells its exponent.
        **kwargs: As for :class:`worldmodel.models.orbit.OrbitModel`.

    Raises:
        ValueError: It is told the exponent, and its input has no place for it.
    """

    def __init__(self, exponents: Sequence[float], told: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not told:
            return
        if self.embedding.kind != "bin_centres":
            raise ValueError(
                f"a model that is told the law needs input bin_centres, got {self.embedding.kind}"
            )
        self.embedding = ToldEmbedding(self.layout, self.gpt.width, self.embedding.kind)
