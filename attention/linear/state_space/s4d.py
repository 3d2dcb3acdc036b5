"""S4D (Gu, Gupta, Goel and Re 2022, arXiv:2206.11893)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear.mixer import RecurrentState
from attention.linear.state_space._diagonal import diagonal_system, expm1, log_uniform_steps
from attention.linear.state_space._layer import StateSpace, as_complex, complex_parameter


class S4D(StateSpace):
    """x' = A x + u, y = 2 Re(C x) with a diagonal A, held for a step dt of each channel (Sect. 3).

    A = -exp(a) + i w starts as S4D-Lin, -1/2 + i pi n, in conjugate pairs of which one is kept;
    with the input held over a step, x_t = exp(dt A) x_{t-1} + (exp(dt A) - 1) / A u_t. B is 1.

    Arguments:
        state: N, an even number.
    """

    name = "s4d"
    source = "Gu et al. 2022 (arXiv:2206.11893), Sects. 3 and 4: S4D-Lin, zero-order hold"
    about = "A linear system with a diagonal matrix for every channel, as one long convolution."
    kept = "H D N"
    arguments: ClassVar = {"state": 64}
    deviations = (
        "A and dt have no weight decay, as published, but the learning rate of the other weights "
        "(theirs: 0.001); no dropout."
    )
    undecayed = ("rate", "frequency")

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        shape = (self.width, self.state // 2)
        self.rate = nn.Parameter(torch.full(shape, math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(shape[1]).expand(shape).clone())
        self.step = nn.Parameter(log_uniform_steps(self.width))
        self.read = complex_parameter(torch.randn(shape, dtype=torch.complex64))

    def _system(self, u: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        a = torch.complex(-self.rate.to(u.dtype).exp(), self.frequency.to(u.dtype))
        log_factor = self.step.to(u.dtype).exp().unsqueeze(-1) * a
        read = 2 * as_complex(self.read, u) * expm1(log_factor) / a
        return diagonal_system(u, log_factor, read, cache, chunk)


MIXER = S4D
