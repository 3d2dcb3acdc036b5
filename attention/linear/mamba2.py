"""Mamba-2 (Dao and Gu 2024, arXiv:2405.21060)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear import fla
from attention.linear._convolution import ShortConvolution
from attention.linear._decay import decayed_attention
from attention.linear._gate import StepSize
from attention.linear._norm import normalised
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision

EXPAND = 2
"""Inner channels per channel of the model, as published."""


class Mamba2(Mixer):
    """h_t = a_t h_{t-1} + dt_t B_t^T x_t, y_t = C_t h_t + D x_t, the state [N, P] (Sects. 6, 7).

    In the words of attention, C is the query, B the key and x the value; all heads share B and C
    ("multi-value" heads). a_t = exp(-exp(A) dt_t) and dt_t = softplus(u_t w + b) are one number
    per head and position. As in the Mamba-2 block: one projection makes z, x, B and C, a short
    convolution and SiLU follow on x, B and C, and the output is RMSNorm(y * SiLU(z)) W. Heads
    have 2 ``head_dim`` channels: 6 width^2 weights and more.

    Arguments:
        state: N, channels of B and C; 128 in the authors' code and in fla's layer.
    """

    name = "mamba2"
    source = "Dao and Gu 2024 (arXiv:2405.21060), Sects. 6 and 7, Listing 1"
    about = "State-space duality: linear attention with a scalar decay, a convolution and a gate."
    kept = "2 H D N + 6 (H D + N)"
    deviations = (
        "Heads of 2 D channels: at D = 64 half as many decays as there. A state of 64 "
        "channels, there 128."
    )
    kernels: ClassVar = {"fla": fla.head_refusal}
    arguments: ClassVar = {"state": 64}

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.state: int = self.args["state"]
        self.inner = EXPAND * self.width
        seen = self.inner + 2 * self.state
        self.gate = nn.Linear(self.width, self.inner, bias=False)
        self.inputs = nn.Linear(self.width, seen, bias=False)
        self.recent = ShortConvolution(seen, "recent", bias=True)
        self.decay = StepSize(self.width, n_head)
        self.skip = nn.Parameter(torch.ones(n_head))
        self.norm = nn.RMSNorm(self.inner, eps=1e-5)
        self.project = nn.Linear(self.inner, self.width, bias=False)

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head."""
        return args["state"], EXPAND * head_dim

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        sizes = [self.inner, self.state, self.state]
        inputs, write, read = self.recent(self.inputs(x), cache).split(sizes, dim=-1)
        (step, log_decay), gate = self.decay(x), self.gate(x)
        v = self._split(inputs)
        q, k = (shared.unsqueeze(1).to(v.dtype) for shared in (read, write))
        with full_precision(x):
            mixed = decayed_attention(q, k, step * v, log_decay, cache, chunk)
            mixed = mixed + self.skip[:, None, None] * v
            gated = self._merge(mixed, like=mixed) * functional.silu(gate)
            mixed = normalised(self.norm, gated)
        return self.project(mixed.to(x.dtype))


MIXER = Mamba2
