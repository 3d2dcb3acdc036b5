"""S4 (Gu, Goel and Re 2021, arXiv:2111.00396)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear._fft import convolution
from attention.linear._scan import keep_state, kept_state
from attention.linear.mixer import RecurrentState
from attention.linear.state_space._diagonal import log_uniform_steps
from attention.linear.state_space._hippo import legendre
from attention.linear.state_space._layer import StateSpace, complex_parameter


class S4(StateSpace):
    """x' = A x + B u, y = C x, A diagonal minus a matrix of rank 1, bilinear steps (Sects. 2, 3).

    A = diag(-exp(a) + i w) - p p^*, B and p start as HiPPO-LegS, C as normal random numbers; each
    channel has its own. States are conjugate pairs, of which the real and the imaginary parts are
    the N real states here: A is then a real matrix, and p p^* is 2 p p^T. With a step dt,
    x_t = (1 - dt/2 A)^-1 ((1 + dt/2 A) x_{t-1} + dt B u_t). A chunk is a convolution with the
    filter C A^j B, the state it begins with, and a sum for the state it ends with.

    Arguments:
        state: N, an even number.
    """

    name = "s4"
    source = "Gu et al. 2021 (arXiv:2111.00396), Sects. 2 and 3, Theorem 1"
    about = "A linear system that starts as HiPPO-LegS for every channel, as convolutions."
    kept = "H D N"
    arguments: ClassVar = {"state": 64}
    deviations = (
        "filters of a chunk come from powers of the matrix by doubling, N^3 work for each channel, "
        "and not from the Cauchy kernel of Algorithm 1, whose C belongs to one length; A, p, B "
        "and dt have no weight decay, as published, but the learning rate of the other weights "
        "(theirs: 0.001); p stands on both sides, and a gated linear unit follows, as in the "
        "authors' later code (paper: p and q, a linear map); no dropout."
    )
    undecayed = ("rate", "frequency", "low_rank", "enter")

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        factors, low_rank, enter = (z.expand(self.width, -1) for z in legendre(self.state))
        self.rate = nn.Parameter((-factors.real).log().float())
        self.frequency = nn.Parameter(factors.imag.float())
        self.low_rank, self.enter = complex_parameter(low_rank), complex_parameter(enter)
        self.step = nn.Parameter(log_uniform_steps(self.width))
        self.read = complex_parameter(torch.randn(factors.shape, dtype=torch.complex64))

    def _discrete(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the matrix [C, N, N], the input weights and the output weights [C, N] of a step.

        States are real parts and then imaginary parts.
        """
        real, turn = -self.rate.to(like.dtype).exp(), self.frequency.to(like.dtype)
        upper = torch.cat([torch.diag_embed(real), torch.diag_embed(-turn)], dim=-1)
        lower = torch.cat([torch.diag_embed(turn), torch.diag_embed(real)], dim=-1)
        p, enter, read = (
            pairs.to(like.dtype).mT.flatten(-2) for pairs in (self.low_rank, self.enter, self.read)
        )
        a = torch.cat([upper, lower], dim=-2) - 2 * p.unsqueeze(-1) * p.unsqueeze(-2)
        step = self.step.to(like.dtype).exp()[:, None, None]
        one = torch.eye(self.state, dtype=like.dtype, device=like.device)
        both = torch.cat([one + step / 2 * a, step * enter.unsqueeze(-1)], dim=-1)
        solved = torch.linalg.solve(one - step / 2 * a, both)
        half = self.state // 2
        # y = 2 Re(c x): of the imaginary parts of c and x the product is negative.
        read = 2 * torch.cat([read[:, :half], -read[:, half:]], dim=-1)
        return solved[..., :-1], solved[..., -1], read

    def _system(self, u: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        a, b, c = self._discrete(u)
        x = kept_state(cache, u.new_zeros(len(u), self.width, self.state))
        found = []
        if chunk is None:
            for u_t in u.unbind(1):
                x = torch.einsum("cij,bcj->bci", a, x) + b * u_t.unsqueeze(-1)
                found.append((x * c).sum(-1))
            y = torch.stack(found, dim=1)
        else:
            powers, writes, reads = _filters(a, b, c, min(chunk, u.shape[1]))
            taps = torch.einsum("cn,cnk->ck", c, writes)
            for part in u.mT.split(chunk, dim=-1):
                size = part.shape[-1]
                begun = torch.einsum("ckn,bcn->bck", reads[:, :size], x)
                found.append(convolution(part, taps[:, :size]) + begun)
                x = _advanced(powers, x, size)
                x = x + torch.einsum("cnk,bck->bcn", writes[..., :size].flip(-1), part)
            y = torch.cat(found, dim=-1).mT
        keep_state(cache, x)
        return y


def _filters(a: Tensor, b: Tensor, c: Tensor, size: int) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return A^(1, 2, 4, ...), A^j B [C, N, size] and C A^(j+1) [C, size, N], by doubling."""
    powers, writes, reads = [a], b.unsqueeze(-1), c.unsqueeze(-2) @ a
    while writes.shape[-1] < size:
        writes = torch.cat([writes, powers[-1] @ writes], dim=-1)
        reads = torch.cat([reads, reads @ powers[-1]], dim=-2)
        powers.append(powers[-1] @ powers[-1])
    return powers, writes[..., :size], reads[:, :size]


def _advanced(powers: list[Tensor], x: Tensor, count: int) -> Tensor:
    """Return A^count x of states [B, C, N], from the powers whose exponents are powers of 2."""
    for place, power in enumerate(powers):
        if count >> place & 1:
            x = torch.einsum("cij,bcj->bci", power, x)
    return x


MIXER = S4
