"""Linear systems with diagonal, complex factors, the same at every position."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attention.linear._fft import convolution
from attention.linear._scan import by_steps, keep_state, kept_state
from attention.linear.mixer import RecurrentState


def diagonal_system(
    u: Tensor, log_factor: Tensor, read: Tensor, cache: RecurrentState, chunk: int | None
) -> Tensor:
    """Return y_t = Re(read . x_t), x_t = exp(log_factor) x_{t-1} + u_t, after a cache's ``state``.

    At once it is a convolution of u with Re(read . exp(log_factor j)), the state it begins with,
    decayed, and a sum for the state it ends with: no state between is made.

    Args:
        u: Real inputs, [B, L, C].
        log_factor: [C or 1, N], complex, with a real part that is not positive.
        read: [C, N], complex.
        cache: Cache, whose ``state`` is replaced.
        chunk: None for position by position, the specification.

    Returns:
        [B, L, C].
    """
    factor = log_factor.exp().expand_as(read)
    state = kept_state(cache, read.new_zeros(()).expand(len(u), *read.shape))
    if chunk is None:
        added = u.to(read.dtype).unsqueeze(-1).expand(*u.shape, read.shape[-1])
        x = by_steps(factor[None, None].expand(1, u.shape[1], -1, -1), added, state)
        keep_state(cache, x[:, -1])
        return (x * read).sum(-1).real
    powers = _powers(factor, u.shape[1] + 1)
    taps = torch.einsum("cn,cnk->ck", read, powers[..., :-1]).real
    y = convolution(u.mT, taps).mT
    if cache.length:
        y = y + torch.einsum("bcn,cn,cnk->bkc", state, read, powers[..., 1:]).real
    ended = torch.einsum("bkc,cnk->bcn", u.to(read.dtype), powers[..., :-1].flip(-1))
    keep_state(cache, powers[..., -1] * state + ended)
    return y


def _powers(factor: Tensor, count: int) -> Tensor:
    """Return the powers 0, 1, ... of factors [C, N] by doubling, [C, N, count].

    exp(j log) of float32 numbers would lose the phase of fast states: at j = 300 a few hundredths.
    """
    powers, next_power = torch.ones_like(factor).unsqueeze(-1), factor.unsqueeze(-1)
    while powers.shape[-1] < count:
        powers = torch.cat([powers, powers * next_power], dim=-1)
        next_power = next_power.square()
    return powers[..., :count]


def expm1(z: Tensor) -> Tensor:
    """Return exp(z) - 1 of complex numbers with all digits; torch has it for real ones alone."""
    grown = torch.expm1(z.real)
    real = grown * z.imag.cos() - 2 * (z.imag / 2).sin().square()
    return torch.complex(real, (grown + 1) * z.imag.sin())


def log_uniform_steps(channels: int) -> Tensor:
    """Return logarithms of step sizes, uniform from log 0.001 to log 0.1, [channels]."""
    return torch.empty(channels).uniform_(math.log(1e-3), math.log(0.1))
