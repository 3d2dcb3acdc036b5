"""Projections of rows of scores on the simplex: sparsemax and 1.5-entmax."""

from __future__ import annotations

import torch
from torch import Tensor


def sparsemax(scores: Tensor) -> Tensor:
    """Project rows on the simplex (Martins and Astudillo 2016, Algorithm 1).

    Args:
        scores: [..., L], -inf where masked; at least one finite entry per row.

    Returns:
        Non-negative rows of sum 1, [..., L].
    """
    # Shifting a row changes nothing, and keeps the sums small.
    scores = scores - scores.detach().amax(dim=-1, keepdim=True)
    ordered = scores.sort(dim=-1, descending=True).values
    finite = ordered.isfinite()
    safe = torch.where(finite, ordered, 0.0)
    size = torch.arange(1, scores.shape[-1] + 1, device=scores.device, dtype=scores.dtype)
    total = safe.cumsum(dim=-1)
    support = ((1 + size * safe > total) & finite).sum(dim=-1, keepdim=True)
    last = (support - 1).clamp_min(0)  # of a row with a NaN nothing is in the support
    threshold = (total.gather(-1, last) - 1) / support
    return (scores - threshold).clamp_min(0.0)


def entmax15(scores: Tensor) -> Tensor:
    """Apply 1.5-entmax to rows (Peters et al. 2019, Algorithm 2).

    Args:
        scores: [..., L], -inf where masked; at least one finite entry per row.

    Returns:
        Non-negative rows of sum 1, [..., L].
    """
    # Shifting a row changes nothing, and keeps the sums of squares small.
    half = (scores - scores.detach().amax(dim=-1, keepdim=True)) / 2
    ordered = half.sort(dim=-1, descending=True).values
    finite = ordered.isfinite()
    size = torch.arange(1, scores.shape[-1] + 1, device=scores.device, dtype=scores.dtype)
    safe = torch.where(finite, ordered, 0.0)
    mean = safe.cumsum(dim=-1) / size
    variance_sum = safe.square().cumsum(dim=-1) - size * mean.square()
    # Clamped away from 0, where the square root has no gradient; such sizes are not chosen.
    inside = (1 - variance_sum) / size
    candidate = mean - torch.where(inside > 0, inside, 1.0).sqrt().masked_fill(inside <= 0, 0.0)
    support = ((candidate <= ordered) & finite).sum(dim=-1, keepdim=True)
    last = (support - 1).clamp_min(0)  # of a row with a NaN nothing is in the support
    threshold = candidate.gather(-1, last)
    return (half - threshold).clamp_min(0.0).square()
