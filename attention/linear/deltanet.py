"""DeltaNet (Schlag et al. 2021; in parallel over the length: Yang et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear import fla
from attention.linear._convolution import ShortConvolution
from attention.linear._delta import delta_rule
from attention.linear._norm import normalised, smooth_unit
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision


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
    kept = "H (D^2 + 9 D)"
    deviations = "q is not divided by sqrt(d): the norm undoes it but for its epsilon."
    kernels: ClassVar = {"fla": fla.delta_refusal}
    expand = 1
    """Value channels per key channel."""

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        width, wide = self.width, self.expand * self.width
        self.query, self.key = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.value = nn.Linear(width, wide, bias=False)
        self.recent_query = ShortConvolution(width, "recent_query")
        self.recent_key = ShortConvolution(width, "recent_key")
        self.recent_value = ShortConvolution(wide, "recent_value")
        self.rate = nn.Linear(width, n_head, bias=False)
        self.norm = nn.RMSNorm(self.expand * head_dim, eps=1e-5)
        self.project = nn.Linear(wide, width, bias=False)

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head."""
        return head_dim, cls.expand * head_dim

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v, rate = self._heads(x, cache)
        with full_precision(x):
            mixed = delta_rule(q, k, v, torch.zeros_like(rate), rate, cache, chunk)
            mixed = normalised(self.norm, mixed)
        return self.project(self._merge(mixed, x))

    def _heads(self, x: Tensor, cache: RecurrentState) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return q, k and v, [B, H, L, D or expand * D], and beta, [B, H, L, 1]."""
        q = self._split(self.recent_query(self.query(x), cache))
        k = self._split(self.recent_key(self.key(x), cache))
        v = self._split(self.recent_value(self.value(x), cache))
        return smooth_unit(q), smooth_unit(k), v, self._split(self.rate(x)).sigmoid()


MIXER = DeltaNet
