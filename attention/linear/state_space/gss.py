"""Gated state spaces (Mehta et al. 2022, arXiv:2206.13947)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._norm import normalised
from attention.linear.mixer import Mixer, RecurrentState
from attention.linear.state_space._diagonal import diagonal_system, expm1
from attention.linear.state_space._layer import as_complex, complex_parameter
from attention.parts.precision import full_precision

EXPAND, SHRINK = 4, 4
"""Channels of the gate, and of the system, per channel of the model, as published."""


class GSS(Mixer):
    """(DSS(LN(GELU(x U))) W * GELU(x V)) O: the system is narrow, the gate wide (Sect. 3).

    u = GELU(x U) has a quarter of the model's channels, v = GELU(x V) four times as many. The
    system is a simplified DSS without step sizes: A = -exp(a) + i exp(w), shared by all channels,
    with x_t = exp(A) x_{t-1} + (exp(A) - 1) / A u_t and y_t = Re(c x_t) + d u_t; a, w, c and d
    start as normal random numbers.

    Arguments:
        state: N.
    """

    name = "gss"
    source = "Mehta et al. 2022 (arXiv:2206.13947), Sect. 3: GSS and its simplified DSS"
    about = "A narrow diagonal state-space model between wide gates."
    kept = "H D N / 2"
    arguments: ClassVar = {"state": 512}
    deviations = (
        "the token mixer alone; the paper's layer, which has a norm and a residual path of the "
        "same form as the GPT's, stands in place of attention and MLP: mlp none comes nearest."
    )

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        if self.width % SHRINK:
            raise ValueError(f"gss needs a width that is a multiple of {SHRINK}, got {self.width}")
        narrow, wide, state = self.width // SHRINK, EXPAND * self.width, self.args["state"]
        self.inputs = nn.Linear(self.width, narrow, bias=False)
        self.gate = nn.Linear(self.width, wide, bias=False)
        self.norm = nn.LayerNorm(narrow)
        self.rate, self.frequency = (nn.Parameter(torch.randn(state)) for _ in range(2))
        self.read = complex_parameter(
            torch.complex(torch.randn(narrow, state), torch.randn(narrow, state))
        )
        self.skip = nn.Parameter(torch.randn(narrow))
        self.widen = nn.Linear(narrow, wide, bias=False)
        self.project = nn.Linear(wide, self.width)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        u = functional.gelu(self.inputs(x))
        u = u.to(torch.promote_types(x.dtype, torch.float32))
        with full_precision(x):
            u = normalised(self.norm, u)
            a = torch.complex(-self.rate.to(u.dtype).exp(), self.frequency.to(u.dtype).exp())
            read = as_complex(self.read, u) * expm1(a) / a
            y = diagonal_system(u, a[None], read, cache, chunk) + self.skip.to(u.dtype) * u
        return self.project(self.widen(y.to(x.dtype)) * functional.gelu(self.gate(x)))


MIXER = GSS
