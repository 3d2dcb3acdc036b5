"""Hawk: the recurrent block with RG-LRU (De et al. 2024, arXiv:2402.19427)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear import fla
from attention.linear._convolution import ShortConvolution
from attention.linear._scan import scanned_by_logs
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision

SHARPNESS = 8.0
"""Constant c of the recurrence gate, as published."""


class Hawk(Mixer):
    """h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t x_t), real and element by element (Eqs. 1 to 4).

    log a_t = -8 softplus(rate) r_t, and the gates r_t and i_t are sigmoids of linear functions of
    x_t, block by block: a block per head. x_t comes from a linear layer and a convolution over
    four inputs, and the layer returns (h GELU(x W)) W_o. At the start
    exp(-softplus(rate)) is uniform in area on the ring from 0.9 to 0.999.
    """

    name = "hawk"
    source = "De et al. 2024 (arXiv:2402.19427), Sects. 2.3 and 2.4, Eqs. 1 to 4"
    about = "A gated linear recurrence (RG-LRU) behind a short convolution, and a GELU gate."
    kept = "4 H D"
    deviations = (
        "the recurrence is as wide as the model, as in RecurrentGemma-2B (the paper: 4/3); a "
        "sequence begins like any other position, where the authors' code leaves sqrt(1 - a^2) "
        "out; 1 - a^2 is kept above 1e-12, where the code bounds the gradient of its root; a "
        "starts on the ring from 0.9 to 0.999, as in that code, where the paper has a^8 there."
    )
    undecayed = ("gate_bias",)
    kernels: ClassVar = {"fla": fla.channel_refusal}

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        width = self.width
        self.gate, self.inputs = nn.Linear(width, width), nn.Linear(width, width)
        self.recent = ShortConvolution(width, "recent", bias=True, activation=nn.Identity())
        nn.init.normal_(self.recent.taps.weight, std=math.sqrt(0.01 / 4))
        assert self.recent.taps.bias is not None
        nn.init.zeros_(self.recent.taps.bias)
        blocks = torch.randn(2, n_head, head_dim, head_dim) / math.sqrt(head_dim)
        self.gate_weight = nn.Parameter(blocks)
        self.gate_bias = nn.Parameter(torch.zeros(2, n_head, head_dim))
        ring = torch.empty(width).uniform_(0.9**2, 0.999**2).log() / 2
        self.rate = nn.Parameter(torch.expm1(-ring).log())  # softplus(rate) = -ring
        self.project = nn.Linear(width, width)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        branch = self.recent(self.inputs(x), cache)
        branch = branch.to(torch.promote_types(x.dtype, torch.float32))
        with full_precision(x):
            heads = branch.unflatten(-1, (self.n_head, self.head_dim))
            weight, bias = (p.to(heads.dtype) for p in (self.gate_weight, self.gate_bias))
            gates = torch.einsum("blhi,ghij->gblhj", heads, weight) + bias[:, None, None]
            forget, enter = gates.sigmoid().flatten(-2)
            log_factor = -SHARPNESS * functional.softplus(self.rate.to(heads.dtype)) * forget
            size = (-torch.expm1(2 * log_factor)).clamp_min(1e-12).sqrt()
            h = scanned_by_logs(log_factor, size * enter * branch, cache, chunk)
        return self.project(h.to(x.dtype) * functional.gelu(self.gate(x), approximate="tanh"))


MIXER = Hawk
