"""Mamba (Gu and Dao 2023, arXiv:2312.00752)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._convolution import ShortConvolution
from attention.linear._scan import scanned
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision

EXPAND, CHANNELS_PER_RANK = 2, 16
"""Inner channels per channel of the model; channels of the model per rank of the steps."""


class Mamba(Mixer):
    """h_t = exp(dt_t A) h_{t-1} + dt_t B_t x_t, y_t = C_t h_t + D x_t, N states a channel (S6).

    dt_t = softplus(x_t W_1 W_2 + b), B_t and C_t are linear functions of x_t, and x_t comes from a
    projection, a convolution over four inputs and SiLU. The layer returns (y SiLU(z)) W_o, z a
    projection of the same input (Sect. 3.4). A starts as -1, ..., -N (S4D-Real), softplus(b)
    log-uniform in [0.001, 0.1]. 6 width^2 weights and more. Heads only set the width.

    Arguments:
        state: N.
    """

    name = "mamba"
    source = "Gu and Dao 2023 (arXiv:2312.00752), Sects. 3.2, 3.4 and 3.6, Algorithm 2"
    about = "A selective state-space model: the input chooses its steps, inputs and outputs."
    kept = "2 H D N + 6 H D"
    arguments: ClassVar = {"state": 16}
    deviations = "beside the GPT's MLP; the paper's blocks have none: mlp none is its model."
    undecayed = ("log_rate",)

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.state: int = self.args["state"]
        inner, self.rank = EXPAND * self.width, math.ceil(self.width / CHANNELS_PER_RANK)
        self.inputs, self.gate = (nn.Linear(self.width, inner, bias=False) for _ in range(2))
        self.recent = ShortConvolution(inner, "recent", bias=True)
        self.select = nn.Linear(inner, self.rank + 2 * self.state, bias=False)
        # Plain parameters, so that a model's initialisation of linear layers leaves them.
        bound = self.rank**-0.5
        self.step = nn.Parameter(torch.empty(inner, self.rank).uniform_(-bound, bound))
        start = torch.empty(inner).uniform_(math.log(1e-3), math.log(0.1)).exp()
        self.step_bias = nn.Parameter(start + torch.log(-torch.expm1(-start)))  # softplus inverse
        rates = torch.arange(1, self.state + 1, dtype=torch.float32)
        self.log_rate = nn.Parameter(rates.log().repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.project = nn.Linear(inner, self.width, bias=False)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        inputs = self.recent(self.inputs(x), cache)
        sizes = [self.rank, self.state, self.state]
        step, write, read = self.select(inputs).split(sizes, dim=-1)
        kind = torch.promote_types(x.dtype, torch.float32)
        u, step, write, read = (z.to(kind) for z in (inputs, step, write, read))
        with full_precision(x):
            step = functional.softplus(step @ self.step.to(kind).T + self.step_bias.to(kind))
            rate = -self.log_rate.to(kind).exp()
            found = []
            # States of a chunk at once: those of a whole sequence are N times its size.
            parts = (z.split(chunk or x.shape[1], dim=1) for z in (step, step * u, write, read))
            for step_n, u_n, write_n, read_n in zip(*parts, strict=True):
                factor = (step_n.unsqueeze(-1) * rate).exp()
                h = scanned(factor, u_n.unsqueeze(-1) * write_n.unsqueeze(-2), cache, chunk)
                found.append((h @ read_n.unsqueeze(-1)).squeeze(-1))
            y = torch.cat(found, dim=1) + self.skip.to(kind) * u
        return self.project(y.to(x.dtype) * functional.silu(self.gate(x)))


MIXER = Mamba
