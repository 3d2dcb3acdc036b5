"""Projections: how the heads of queries, keys and values are made of a layer's input.

A projection maps an input [B, L, width] to ``parts``, tensors [B, *, L, *], which are what a cache
keeps, and ``joined`` makes heads [B, H, L, D] of the parts. RoPE turns the last part, which has the
channels; that is the same as to turn the heads, because joining is linear in that part.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention.scalars import check_size

KINDS = ("full", "tpa")
RANKS = {"q_rank": 6, "k_rank": 2, "v_rank": 2}
"""Ranks of ``tpa`` and their defaults, those of the published T6."""


class FullProjection(nn.Linear):
    """One linear map to all heads; its one part is the heads themselves.

    Args:
        width: Channels of the input.
        n_head: Number of heads, H.
        head_dim: Channels per head, D.
    """

    def __init__(self, width: int, n_head: int, head_dim: int) -> None:
        super().__init__(width, n_head * head_dim, bias=False)
        self.n_head = n_head

    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return heads [B, H, L, D] of inputs [B, L, width]."""
        return (self(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2),)

    def joined(self, *parts: Tensor) -> Tensor:
        """Return the one part, which is the heads."""
        (heads,) = parts
        return heads

    @property
    def kept(self) -> int:
        """Numbers that a cache keeps of one position."""
        return self.out_features


class TensorProduct(nn.Module):
    """Heads as a sum of R products of two factors of the input (Zhang et al. 2025, TPA, Sect. 3.1).

    At a position the H x D matrix of all heads is (1 / R) sum_r a_r b_r^T, where a_r, over heads,
    and b_r, over channels, are linear in the input: R (H + D) numbers in place of H D.

    Args:
        width: Channels of the input.
        n_head: Number of heads, H.
        head_dim: Channels per head, D.
        rank: R, the number of products.
    """

    def __init__(self, width: int, n_head: int, head_dim: int, rank: int) -> None:
        super().__init__()
        self.n_head, self.head_dim, self.rank = n_head, head_dim, rank
        self.over_heads = nn.Linear(width, rank * n_head, bias=False)
        self.over_channels = nn.Linear(width, rank * head_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, L, width] to all heads, [B, L, H D], as a linear map does."""
        return self.joined(*self.parts(x)).transpose(1, 2).flatten(-2)

    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the factors of inputs [B, L, width]: a [B, R, L, H] and b [B, R, L, D]."""
        a, b = (
            factor(x).unflatten(-1, (self.rank, -1)).transpose(1, 2)
            for factor in (self.over_heads, self.over_channels)
        )
        return a, b

    def joined(self, *parts: Tensor) -> Tensor:
        """Return heads [B, H, L, D] of factors a [B, R, L, H] and b [B, R, L, D]."""
        a, b = parts
        return torch.einsum("brlh,brld->bhld", a, b) / self.rank

    @property
    def kept(self) -> int:
        """Numbers that a cache keeps of one position."""
        return self.rank * (self.n_head + self.head_dim)

    def extra_repr(self) -> str:
        """Name the rank, so that printing a model shows it."""
        return f"rank={self.rank}"


Projection = FullProjection | TensorProduct


def build(
    kind: str, width: int, n_head: int, n_kv_head: int, head_dim: int, **ranks: int | None
) -> tuple[Projection, Projection, Projection]:
    """Return the projections of queries, keys and values.

    Args:
        kind: One of ``KINDS``.
        width: Channels of the input.
        n_head: Heads of queries.
        n_kv_head: Heads of keys and of values.
        head_dim: Channels per head.
        **ranks: ``q_rank``, ``k_rank`` and ``v_rank``; None for the default.

    Raises:
        ValueError: An unknown kind, a rank below 1, or a rank where the kind has none.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown projections {kind!r}; choose from {', '.join(KINDS)}")
    for name, rank in ranks.items():
        if rank is not None and kind != "tpa":
            raise ValueError(f"{name} is of projections tpa, these are {kind}: leave it out")
        if rank is not None:
            check_size(name, rank)
    heads = (n_head, n_kv_head, n_kv_head)
    if kind == "full":
        q, k, v = (FullProjection(width, n, head_dim) for n in heads)
        return q, k, v
    chosen = [RANKS[name] if ranks.get(name) is None else ranks[name] for name in RANKS]
    a, b, c = (
        TensorProduct(width, n, head_dim, rank)
        for n, rank in zip(heads, chosen, strict=True)
        if rank is not None
    )
    return a, b, c
