"""Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from attention.linear._delta import delta_rule
from attention.linear._gate import StepSize
from attention.linear._norm import normalised
from attention.linear.deltanet import DeltaNet
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision


class GatedDeltaNet(DeltaNet):
    """S_t = alpha_t (1 - beta_t k_t^T k_t) S_{t-1} + beta_t k_t^T v_t, o_t = q_t S_t (Sect. 3.1).

    The delta rule after a decay alpha_t of the whole state, one number per head and position, in
    the parametrisation of Mamba-2, whose exp(A) starts in [1, 16] (in fla's layer in [0, 16]);
    beta_t = sigmoid(x_t w). Queries, keys and values as in DeltaNet; the output is
    RMSNorm(o) * SiLU(x W_g) before the last projection (Sect. 3.4).
    Keys have ``head_dim`` channels and values twice as many: 8 width^2 weights (the paper's
    models balance theirs by fewer heads, n_head * head_dim = 0.75 width).
    """

    name = "gated_deltanet"
    source = "Yang et al. 2024 (arXiv:2412.06464), Sects. 3.1, 3.3, 3.4"
    about = "DeltaNet whose whole state decays at a rate the input chooses."
    kept = "H (2 D^2 + 12 D)"
    deviations = (
        "q as in deltanet. exp(A) starts in [1, 16], in the code in [0, 16]. 8 width^2 "
        "weights; the paper's models have 6."
    )
    expand = 2

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.gate = nn.Linear(self.width, self.expand * self.width, bias=False)
        self.decay = StepSize(self.width, n_head)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v, rate = self._heads(x, cache)
        _, log_decay = self.decay(x)
        with full_precision(x):
            mixed = normalised(self.norm, delta_rule(q, k, v, log_decay, rate, cache, chunk))
        return self.project(self._merge(mixed, x) * functional.silu(self.gate(x)))


MIXER = GatedDeltaNet
