"""DSS (Gupta, Gu and Berant 2022, arXiv:2203.14343)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear.mixer import RecurrentState
from attention.linear.state_space._diagonal import diagonal_system, expm1, log_uniform_steps
from attention.linear.state_space._hippo import legendre
from attention.linear.state_space._layer import StateSpace, as_complex, complex_parameter


class DSS(StateSpace):
    """y = Re(w x), x_t = exp(dt A) x_{t-1} + (exp(dt A) - 1) / A u_t, diagonal: DSS-exp.

    A = -exp(a) + i w is shared by all channels and starts with -1/2 as its real part and the
    imaginary ones of the skew part of HiPPO-LegS (of 2 N states, the positive half); dt and w are
    a channel's own. Its states are not in pairs. A linear map follows.

    Arguments:
        state: N.
    """

    name = "dss"
    source = "Gupta et al. 2022 (arXiv:2203.14343), Prop. 1(a), Sect. 3: DSS-exp"
    about = "A linear system with a diagonal matrix shared by all channels, as one convolution."
    kept = "2 H D N"
    arguments: ClassVar = {"state": 64}
    deviations = (
        "DSS-exp. DSS-softmax, which the paper prefers, divides its filter by a sum over the "
        "whole length: a position would change with what follows, and no state could be kept. "
        "One learning rate for all weights; no dropout."
    )
    undecayed = ("rate", "frequency", "step", "read")
    gated, paired = False, False

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        factors, _, _ = legendre(2 * self.state)
        self.rate = nn.Parameter(torch.full((self.state,), math.log(0.5)))
        self.frequency = nn.Parameter(factors.imag.float())
        self.step = nn.Parameter(log_uniform_steps(self.width))
        self.read = complex_parameter(
            torch.complex(torch.randn(self.width, self.state), torch.randn(self.width, self.state))
        )

    def _system(self, u: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        a = torch.complex(-self.rate.to(u.dtype).exp(), self.frequency.to(u.dtype))
        log_factor = self.step.to(u.dtype).exp().unsqueeze(-1) * a
        read = as_complex(self.read, u) * expm1(log_factor) / a
        return diagonal_system(u, log_factor, read, cache, chunk)


MIXER = DSS
