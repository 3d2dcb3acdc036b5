"""DeltaNet (Schlag et al. 2021; in parallel over the length: Yang et al. 2024)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attention.linear._convolution import ShortConvolution
from attention.linear._delta import delta_rule
from attention.linear._norm import by_head, unit
from attention.linear.mixer import Mixer, RecurrentState, full_precision


class DeltaNet(Mixer):
    """S_t = S_{t-1} + beta_t k_t^T (v_t - k_t S_{t-1}), o_t = q_t S_t (2024, Sect. 2.2).

    What the state answers to a key is replaced by the new value, by the share
    beta_t = sigmoid(x_t w), one per head. As in the DeltaNet transformer (2024, Sect. 3.3): a
    short convolution and SiLU on queries, keys and values, queries and keys of unit length,
    RMSNorm of each head's output.
    """

    name = "deltanet"
    source = "Schlag et al. 2021 (delta rule); Yang et al. 2024 (arXiv:2406.06484), Sects. 2.2, 3"
    about = "Linear attention that overwrites: a key's old value is subtracted before the new one."

    def __init__(
        self, n_head: int, head_dim: int, chunk: int = 64, layer: int = 0, **args: Any
    ) -> None:
        super().__init__(n_head, head_dim, chunk, layer, **args)
        width = self.width
        self.query, self.key, self.value, self.project = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.recent_query, self.recent_key, self.recent_value = (
            ShortConvolution(width, f"recent_{what}") for what in ("query", "key", "value")
        )
        self.rate = nn.Linear(width, n_head, bias=False)
        self.norm = nn.RMSNorm(head_dim, eps=1e-5)

    def _mix(self, x: Tensor, cache: RecurrentState, stepwise: bool) -> Tensor:
        q = self._split(self.recent_query(self.query(x), cache))
        k = self._split(self.recent_key(self.key(x), cache))
        v = self._split(self.recent_value(self.value(x), cache))
        rate = self._split(self.rate(x))
        with full_precision(x):
            q, k, rate = unit(q), unit(k), rate.sigmoid()
            no_decay = torch.zeros_like(rate)
            chunk = None if stepwise else self.chunk
            mixed = delta_rule(q, k, v, no_decay, rate, cache, chunk)
        return self.project(by_head(self.norm, self._merge(mixed, x), self.n_head))


MIXER = DeltaNet
