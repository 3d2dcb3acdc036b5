"""Embedding of observed orbits, by tokens, bin centres or exact coordinates."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from orbits.runs.choices import check_choice
from orbits.tokens import TokenLayout

OrbitInput = Literal["tokens", "bin_centres", "coordinates"]
NOISY = "noisy_"
"""Prefix of the noisy ``tokens`` and ``coordinates``, which a model reads where they are there."""


class OrbitEmbedding(nn.Module):
    """Embed the rows of an orbit sequence.

    Args:
        layout: The protocol's vocabulary.
        width: Channels of the backbone.
        kind: ``tokens``: one learned vector per x token and per y token, summed.
            ``bin_centres``: sines and cosines of the bin's centre through one linear map, so that
            neighbouring bins start out alike; the information is that of the tokens.
            ``coordinates``: the same map of the exact coordinates.
    """

    frequencies: Tensor

    def __init__(self, layout: TokenLayout, width: int, kind: OrbitInput) -> None:
        super().__init__()
        self.layout, self.kind = layout, kind
        check_choice("input", kind, get_args(OrbitInput))
        if kind == "tokens":
            self.tables = nn.ModuleList(nn.Embedding(layout.vocab_size, width) for _ in range(2))
            for table in self.tables.parameters():
                nn.init.normal_(table, std=0.5)
        else:
            self.time_step = nn.Embedding(len(layout.dts), width)
            octaves = max(1, math.ceil(math.log2(layout.n_bins)))
            box = layout.high - layout.low
            # Half a wave over the box, then octaves down to waves of about four bins.
            frequencies = math.pi / box * 2.0 ** torch.arange(octaves)
            self.register_buffer("frequencies", frequencies, persistent=False)
            self.features = nn.Linear(2 * (1 + 2 * octaves), width)

    def forward(self, tokens: Tensor, coordinates: Tensor) -> Tensor:
        """Embed a batch.

        Args:
            tokens: int64 [B, T, 2]; row 0 is the time step.
            coordinates: [B, T, 2] in AU; used by the kind ``coordinates`` only.

        Returns:
            [B, T, width].
        """
        if self.kind == "tokens":
            x_table, y_table = self.tables
            return x_table(tokens[..., 0]) + y_table(tokens[..., 1])
        if self.kind == "bin_centres":
            centres = self.layout.low + (tokens[:, 1:] + 0.5) * self.layout.width
        else:
            centres = coordinates[:, 1:]
        step = self.time_step(tokens[:, :1, 0] - self.layout.n_bins)
        return torch.cat([step, self.features(self._waves(centres))], dim=1)

    def _waves(self, positions: Tensor) -> Tensor:
        phase = positions.to(self.frequencies.dtype)[..., None] * self.frequencies
        scaled = positions.to(self.frequencies.dtype)[..., None] / self.layout.high
        return torch.cat([scaled, phase.sin(), phase.cos()], dim=-1).flatten(-2)
