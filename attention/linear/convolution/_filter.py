"""The implicit filter of Hyena: a small network of the place in the sequence."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

FEATURES, HIDDEN, FREQUENCY = 33, 64, 14.0
"""Features of a place, channels of the network and the start of its sines' frequencies.

Those of the authors' language models (``configs/experiment/pile/hyena.yaml`` of safari).
"""
FAST, SLOW, FLOOR = 0.3, 1.5, 1e-2
"""Places, in lengths, where the fastest and the slowest channel have decayed to FLOOR."""


class ImplicitFilter(nn.Module):
    """h_t = exp(-t delta) network(t), of as many channels, at t = 0, 1 / (length - 1), ..., 1.

    Features of a place are t, and cosines and sines of 16 frequencies; the network has four
    layers with sin(w z) between them, w learned and the same in all (Poli et al. 2023, Sect. 3.3).
    The rates delta of the window are fixed, equally spaced over the channels.

    Args:
        channels: C.
        length: Places; a filter ends with the last.
    """

    def __init__(self, channels: int, length: int) -> None:
        super().__init__()
        self.channels, self.length = channels, length
        sizes = (FEATURES, HIDDEN, HIDDEN, HIDDEN, channels)
        # Convolutions of size 1, so that a model's initialisation of linear layers leaves them.
        self.layers = nn.ModuleList(
            nn.Conv1d(before, after, 1, bias=place < 3)
            for place, (before, after) in enumerate(itertools.pairwise(sizes))
        )
        self.frequency = nn.Parameter(torch.full((HIDDEN, 1), FREQUENCY))

    def forward(self, count: int, dtype: torch.dtype) -> Tensor:
        """Return the first taps of the filters, at most ``length``, [C, count]."""
        device = self.frequency.device
        places = torch.arange(min(count, self.length), dtype=dtype, device=device)
        t = places / max(1, self.length - 1)
        bands = (FEATURES - 1) // 2
        angles = torch.linspace(1e-4, bands - 1, bands, dtype=dtype, device=device)[:, None]
        angles = angles * (2 * math.pi / self.length) * places
        z = torch.cat([t[None], angles.cos(), -angles.sin()])
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Conv1d)
            z = layer.weight.to(dtype).squeeze(-1) @ z
            if layer.bias is not None:
                z = z + layer.bias.to(dtype)[:, None]
            if place < len(self.layers) - 1:
                z = (self.frequency.to(dtype) * z).sin()
        slow, fast = (-math.log(FLOOR) / share for share in (SLOW, FAST))
        rates = torch.linspace(slow, fast, self.channels, dtype=dtype, device=device)
        return z * (-rates[:, None] * t).exp()
