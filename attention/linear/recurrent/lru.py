"""The linear recurrent unit (Orvieto et al. 2023, arXiv:2303.06349)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._scan import scanned
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision


class LRU(Mixer):
    """h_t = lambda h_{t-1} + exp(gamma) B x_t, y_t = Re(C h_t) + D x_t, complex.

    lambda = exp(-exp(nu) + i exp(theta)) starts uniform on the unit disk, gamma such that inputs
    keep their size, B and C as Glorot's. GELU and a gated linear unit follow. The
    state has as many channels as the model. Positions come from the recurrence alone.
    """

    name = "lru"
    source = "Orvieto et al. 2023 (arXiv:2303.06349), Sect. 3"
    about = "A linear recurrence with a complex factor per channel, then a gated linear unit."
    kept = "2 H D"
    deviations = (
        "weights of the GLU start as those of every GPT here; no dropout; B and C decay with the "
        "other weights, at the same learning rate (the paper's recurrence: 0.25 or 0.5 of it)."
    )

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        width = self.width
        # Uniform in area; the smallest normal number, where it is 0, keeps logarithms finite.
        squared = torch.rand(width).clamp_min(torch.finfo(torch.float32).tiny)
        self.rate = nn.Parameter((-0.5 * squared.log()).log())
        self.phase = nn.Parameter((2 * math.pi * torch.rand(width).clamp_min(1e-6)).log())
        self.scale = nn.Parameter(0.5 * (-torch.expm1(squared.log())).log())
        self.enter_real, self.enter_imag = (
            nn.Parameter(torch.randn(width, width) / math.sqrt(2 * width)) for _ in range(2)
        )
        self.leave_real, self.leave_imag = (
            nn.Parameter(torch.randn(width, width) / math.sqrt(width)) for _ in range(2)
        )
        self.skip = nn.Parameter(torch.randn(width))
        self.project = nn.Linear(width, 2 * width)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        inputs = x.to(torch.promote_types(x.dtype, torch.float32))
        kind = inputs.dtype
        with full_precision(x):
            entered = (inputs @ part.to(kind).T for part in (self.enter_real, self.enter_imag))
            b = self.scale.to(kind).exp() * torch.complex(*entered)
            log_factor = torch.complex(-self.rate.to(kind).exp(), self.phase.to(kind).exp())
            factor = log_factor.exp().expand(1, x.shape[1], -1)
            h = scanned(factor, b, cache, chunk)
            y = h.real @ self.leave_real.to(kind).T - h.imag @ self.leave_imag.to(kind).T
            y = functional.gelu(y + self.skip.to(kind) * inputs)
        return functional.glu(self.project(y.to(x.dtype)), dim=-1)


MIXER = LRU
