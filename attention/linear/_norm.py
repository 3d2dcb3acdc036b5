"""Norms of heads and vectors."""

from __future__ import annotations

from torch import Tensor, nn
from torch.func import functional_call


def normalised(norm: nn.Module, x: Tensor) -> Tensor:
    """Apply a norm in the dtype of x, whatever the dtype of its weights.

    Sums over many positions are normalised before they are cast: float16 does not hold them.
    """
    weights = {name: weight.to(x.dtype) for name, weight in norm.named_parameters()}
    return functional_call(norm, weights, x)


def smooth_unit(x: Tensor) -> Tensor:
    """Return x / sqrt(|x|^2 + 1e-6) of vectors [..., D], as published: smooth at 0."""
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()
