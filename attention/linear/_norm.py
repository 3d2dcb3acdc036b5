"""Norms of single heads and vectors."""

from __future__ import annotations

from torch import Tensor, nn


def by_head(norm: nn.Module, x: Tensor, n_head: int) -> Tensor:
    """Apply a norm of D channels to each head of [B, L, H * D]."""
    return norm(x.unflatten(-1, (n_head, -1))).flatten(-2)


def unit(x: Tensor) -> Tensor:
    """Return vectors [..., D] of length 1; a vector of zeros stays one, with a finite gradient."""
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()
