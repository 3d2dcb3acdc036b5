"""Metrics of attention matrices: sink ratio, density, sparsity, entropy.

Every function takes weights [..., L, L] as :func:`attention.weights` returns them (rows are
queries, causal) and averages over everything but the heads, unless it says otherwise.
"""

from __future__ import annotations

import torch
from torch import Tensor


def sink_ratio(weights: Tensor) -> Tensor:
    """Return the mean weight on the first key (Lazy Attention, Sect. 3).

    Uniform attention over L rows gives (1 + 1/2 + ... + 1/L) / L: compare with
    :func:`uniform_sink_ratio`.

    Args:
        weights: [..., H, L, L].

    Returns:
        [H].
    """
    return _over_heads(weights[..., 0])


def uniform_sink_ratio(length: int) -> float:
    """Return the sink ratio of uniform attention, H_L / L (0.0424 at 128, 0.0133 at 512)."""
    return float((1 / torch.arange(1, length + 1, dtype=torch.float64)).mean())


def density(weights: Tensor) -> Tensor:
    """Return the mean mass on keys other than the first; 1 - sink ratio where rows sum to 1.

    The share that is missing from sink ratio + density is mass, not zero weights: the published
    "sparsity" of 59.58% is such a share. See :func:`zero_share` for the other meaning.

    Args:
        weights: [..., H, L, L].

    Returns:
        [H].
    """
    return _over_heads(weights[..., 1:].sum(dim=-1))


def zero_share(weights: Tensor) -> Tensor:
    """Return the share of keys up to a row's own whose weight is exactly 0.

    Keys that a window or a choice of keys leaves out count, too.

    Args:
        weights: [..., H, L, L].

    Returns:
        [H].
    """
    visible = torch.ones(weights.shape[-2:], dtype=torch.bool, device=weights.device).tril()
    zeros = (weights == 0) & visible
    counts = zeros.sum(dim=(-1, -2)).to(torch.float64) / visible.sum()
    return counts.reshape(-1, weights.shape[-3]).mean(dim=0)


def row_entropy(weights: Tensor) -> Tensor:
    """Return the mean entropy of a row in nats, of |weights| scaled to sum 1; dead rows give 0.

    Args:
        weights: [..., H, L, L].

    Returns:
        [H].
    """
    size = weights.abs().double()
    total = size.sum(dim=-1, keepdim=True)
    share = size / torch.where(total > 0, total, 1.0)
    return _over_heads(torch.special.entr(share).sum(dim=-1))


def masses(weights: Tensor) -> dict[str, float]:
    """Return the mass of rows on the first key, on the others and on none, and its spread.

    Args:
        weights: [..., H, L, L].

    Returns:
        Means over heads and rows. In %: ``sink``, the weight on the first key; ``density``, that
        on the others; ``missing``, the rest to 100; ``zeros``, the share of visible keys whose
        weight is exactly 0. In nats: ``entropy``.
    """
    sink, others = (100 * float(of(weights).mean()) for of in (sink_ratio, density))
    return {
        "sink": sink,
        "density": others,
        "missing": 100 - sink - others,
        "zeros": 100 * float(zero_share(weights).mean()),
        "entropy": float(row_entropy(weights).mean()),
    }


def _over_heads(rows: Tensor) -> Tensor:
    """Average [..., H, L] over all dimensions but H."""
    return rows.double().mean(dim=-1).reshape(-1, rows.shape[-2]).mean(dim=0)
