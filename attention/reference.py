"""The eager implementation of every variant, driven by AttnSpec: the mathematical specification.

Numerics: the re-weighting (Eq. 5) divides by the row's largest entry before the power, which
cancels in the l1 norm and cannot overflow. A row in which nothing survives (equal scores) is
dead: its output and its gradient are zero. Half precision is computed in float32: it can hold
neither a row number above 2048 (float16) or 256 (bfloat16) nor the distance to the mean weight.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from attention.spec import AttnSpec

DEAD_BELOW = 1e-5
"""A row is dead when no key exceeds the mean weight 1/i by more than this relative amount."""

OFFSET_FREE_ROWS = 3
"""Algorithm 1: the first three rows keep every key."""


def weights(q: Tensor, k: Tensor, spec: AttnSpec) -> Tensor:
    """Return the attention matrix [B, H, Lq, Lk]; queries are the last Lq positions.

    Args:
        q: Queries [B, H, Lq, D].
        k: Keys [B, H, Lk, D], Lk >= Lq.
        spec: The variant.
    """
    given, dtype = q.dtype, torch.promote_types(q.dtype, torch.float32)
    q, k = q.to(dtype), k.to(dtype)
    rows = torch.arange(k.shape[-2] - q.shape[-2] + 1, k.shape[-2] + 1, device=q.device)
    mask = torch.arange(1, k.shape[-2] + 1, device=q.device) <= rows[:, None]
    count = rows.to(q.dtype)[:, None]
    scores = _scores(q, k, spec, count)
    stage1 = _normalised(scores, mask, spec)
    if spec.p is not None:
        stage1 = _reweighted(stage1, mask, rows[:, None], count, spec.p)
    return stage1.to(given)


def attend(q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec) -> Tensor:
    """Return the attention output [B, H, Lq, D]."""
    return weights(q, k, spec) @ v


def _scores(q: Tensor, k: Tensor, spec: AttnSpec, count: Tensor) -> Tensor:
    if spec.scale == "inverse_sqrt_dim":
        return (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
    q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
    return (math.log(q.shape[-1]) * torch.log(count) * q) @ k.transpose(-1, -2)


def _normalised(scores: Tensor, mask: Tensor, spec: AttnSpec) -> Tensor:
    if spec.phi == "exp":
        return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    positive = functional.softplus(scores).masked_fill(~mask, 0.0)
    return positive / positive.sum(dim=-1, keepdim=True)


def _reweighted(weight: Tensor, mask: Tensor, rows: Tensor, count: Tensor, p: float) -> Tensor:
    offset = (rows > OFFSET_FREE_ROWS).to(weight.dtype)
    excess = functional.relu(weight * count - offset).masked_fill(~mask, 0.0)
    # The result does not change with the scale of a row, so neither does its gradient.
    largest = excess.detach().amax(dim=-1, keepdim=True)
    alive = largest > DEAD_BELOW
    ratio = torch.where(alive, excess / largest.clamp_min(DEAD_BELOW), 0.0)
    survives = ratio > 0
    # The inner `where` keeps the gradient of ratio^p finite at 0 for p < 1.
    powered = torch.where(survives, torch.where(survives, ratio, 1.0) ** p, 0.0)
    return powered / powered.sum(dim=-1, keepdim=True).masked_fill(~alive, 1.0)
