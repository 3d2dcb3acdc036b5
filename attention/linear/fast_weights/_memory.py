"""The neural memory of Titans: a matrix that learns with momentum and forgets."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from attention.linear._decay import pair_scores


class Rates(NamedTuple):
    """Rates of the memory's update at each position, [B, H, L, 1] each.

    Attributes:
        log_keep: log(1 - alpha), not positive.
        log_momentum: log eta, not positive.
        step: theta.
    """

    log_keep: Tensor
    log_momentum: Tensor
    step: Tensor


def recurrent(
    q: Tensor, k: Tensor, error: Tensor, rates: Rates, memory: Tensor, momentum: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return q_t M_t position by position, and the last M and S: the specification.

    S_t = eta_t S_{t-1} - theta_t k_t^T error_t and M_t = (1 - alpha_t) M_{t-1} + S_t (Behrouz et
    al. 2024, Eqs. 13 and 14).

    Args:
        q: [B, H, L, D].
        k: Keys, shaped as q.
        error: Errors, shaped as q.
        rates: alpha, eta and theta.
        memory: M before the first position, [B, H, D, D].
        momentum: S before it.

    Returns:
        [B, H, L, D] and twice [B, H, D, D].
    """
    found = []
    steps = zip(*(z.split(1, dim=-2) for z in (q, k, error, *rates)), strict=True)
    for q_t, k_t, error_t, log_keep, log_momentum, step in steps:
        momentum = log_momentum.exp() * momentum - step * (k_t.mT @ error_t)
        memory = log_keep.exp() * memory + momentum
        found.append(q_t @ memory)
    return torch.cat(found, dim=-2), memory, momentum


def chunked(
    q: Tensor, k: Tensor, error: Tensor, rates: Rates, memory: Tensor, momentum: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute :func:`recurrent` by products of matrices.

    M_t = B_t M_0 + F_t S_0 - sum_{j <= t} c_tj k_j^T error_j, so that q_t M_t is what q_t reads
    from M_0 and S_0, and a sum over pairs (Sect. 3.2).
    """
    of_memory, of_momentum, of_steps, of_last = coefficients(rates)
    kept = of_memory * (q @ memory) + of_momentum * (q @ momentum)
    out = kept - (q @ k.mT * of_steps) @ error
    last = of_memory[..., -1:, :] * memory + of_momentum[..., -1:, :] * momentum
    memory = last - (k * of_steps[..., -1, :, None]).mT @ error
    passed = rates.log_momentum.sum(-2, keepdim=True).exp()
    return out, memory, passed * momentum - (k * of_last[..., None]).mT @ error


def coefficients(rates: Rates) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the dependence of M_t and the last S on the state before and on the steps.

    Returns:
        B_t and F_t, [..., L, 1] each; c_tj, [..., L, L]; the share of step j in S, [..., L].
    """
    ones = torch.ones_like(rates.step)
    keep = pair_scores(ones, ones, rates.log_keep)
    momentum = pair_scores(ones, ones, rates.log_momentum)
    of_momentum = keep @ rates.log_momentum.cumsum(-2).exp()
    of_steps = (keep @ momentum) * rates.step.mT
    of_last = momentum[..., -1, :] * rates.step[..., 0]
    return rates.log_keep.cumsum(-2).exp(), of_momentum, of_steps, of_last
