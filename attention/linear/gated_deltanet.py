"""Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from attention.linear._convolution import ShortConvolution
from attention.linear._delta import delta_rule
from attention.linear._gate import StepSize
from attention.linear._norm import by_head, unit
from attention.linear.mixer import Mixer, RecurrentState, full_precision

EXPAND = 2
"""Channels of a value for one of a key, as in the authors' layer."""


class GatedDeltaNet(Mixer):
    """S_t = alpha_t (1 - beta_t k_t^T k_t) S_{t-1} + beta_t k_t^T v_t, o_t = q_t S_t (Sect. 3.1).

    The delta rule after a decay alpha_t of the whole state, one number per head and position, in
    the parametrisation of Mamba-2; beta_t = sigmoid(x_t w). Queries, keys and values as in
    DeltaNet; the output is RMSNorm(o) * SiLU(x W_g) before the last projection (Sect. 3.4).
    Keys have ``head_dim`` channels and values twice as many: 8 width^2 weights (the paper's
    models balance theirs by fewer heads, n_head * head_dim = 0.75 width).
    """

    name = "gated_deltanet"
    source = "Yang et al. 2024 (arXiv:2412.06464), Sects. 3.1, 3.3, 3.4"
    about = "DeltaNet whose whole state decays at a rate the input chooses."

    def __init__(
        self, n_head: int, head_dim: int, chunk: int = 64, layer: int = 0, **args: Any
    ) -> None:
        super().__init__(n_head, head_dim, chunk, layer, **args)
        width, wide = self.width, EXPAND * self.width
        self.query, self.key = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.value, self.gate = (nn.Linear(width, wide, bias=False) for _ in range(2))
        self.recent_query = ShortConvolution(width, "recent_query")
        self.recent_key = ShortConvolution(width, "recent_key")
        self.recent_value = ShortConvolution(wide, "recent_value")
        self.rate = nn.Linear(width, n_head, bias=False)
        self.decay = StepSize(width, n_head)
        self.norm = nn.RMSNorm(EXPAND * head_dim, eps=1e-5)
        self.project = nn.Linear(wide, width, bias=False)

    def _mix(self, x: Tensor, cache: RecurrentState, stepwise: bool) -> Tensor:
        q = self._split(self.recent_query(self.query(x), cache))
        k = self._split(self.recent_key(self.key(x), cache))
        v = self._split(self.recent_value(self.value(x), cache))
        rate, (_, log_decay) = self._split(self.rate(x)), self.decay(x)
        with full_precision(x):
            q, k, rate = unit(q), unit(k), rate.sigmoid()
            chunk = None if stepwise else self.chunk
            mixed = delta_rule(q, k, v, log_decay, rate, cache, chunk)
        mixed = by_head(self.norm, self._merge(mixed, x), self.n_head)
        return self.project(mixed * functional.silu(self.gate(x)))


MIXER = GatedDeltaNet
