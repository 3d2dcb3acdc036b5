"""The decay of Mamba-2, which Gated DeltaNet takes over."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class StepSize(nn.Module):
    """dt = softplus(x w + b) and log a = -exp(A) dt, one of each per head.

    Gu and Dao 2023, Sect. 3.6, with one A per head as in Dao and Gu 2024, Sect. 7. At the start
    softplus of dt's bias is log-uniform in [0.001, 0.1] and exp(A) uniform in [1, 16], as in their
    code.

    Args:
        width: Channels of x.
        n_head: Number of heads.
    """

    def __init__(self, width: int, n_head: int) -> None:
        super().__init__()
        self.step = nn.Linear(width, n_head, bias=False)
        start = torch.empty(n_head).uniform_(math.log(1e-3), math.log(0.1)).exp()
        self.step_bias = nn.Parameter(start + torch.log(-torch.expm1(-start)))  # softplus inverse
        self.log_rate = nn.Parameter(torch.empty(n_head).uniform_(1, 16).log())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return dt and log a, [B, H, L, 1] each, in at least float32, of x [B, L, width]."""
        step = self.step(x).mT.unsqueeze(-1)
        step = step.to(torch.promote_types(step.dtype, torch.float32))
        step = functional.softplus(step + self.step_bias[:, None, None])
        return step, -self.log_rate[:, None, None].to(step.dtype).exp() * step
