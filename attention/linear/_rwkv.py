"""Parts of RWKV-6 and RWKV-7: the token shift, low-rank functions, projections, output norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attention.linear._convolution import with_previous
from attention.linear._norm import normalised
from attention.linear.mixer import Mixer, RecurrentState


class RWKV(Mixer):
    """The projections, the output norm, and start values that depend on the depth of the layer.

    Start values are those of the authors' code (RWKV-LM, ``RWKV_Tmix_x060`` and ``_x070``), in
    which i / C places a channel for the token shift and i / (C - 1) for all else; the four
    projections start as the other linear layers of a model do.

    Attributes:
        depth: 0 in the first layer to 1 in the last.
    """

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.depth = self.layer / max(self.n_layer - 1, 1)
        self.receptance, self.key, self.value, self.project = (
            nn.Linear(self.width, self.width, bias=False) for _ in range(4)
        )
        self.norm = nn.GroupNorm(n_head, self.width, eps=64e-5)
        nn.init.constant_(self.norm.weight, ((self.layer + 1) / self.n_layer) ** 0.7)

    def _shift_start(self, power: float = 1.0) -> Tensor:
        """Return the initial share of the last input in each channel, [width]."""
        place = torch.arange(self.width) / self.width
        return 1 - place ** (power * (1 - self.layer / self.n_layer))

    def _normalised(self, heads: Tensor) -> Tensor:
        """Return [B, L, width] of heads [B, H, L, D], each head of a position normalised alone."""
        merged = self._merge(heads, like=heads)
        return normalised(self.norm, merged.flatten(0, 1)).view_as(merged)


def change_since_last(x: Tensor, cache: RecurrentState) -> Tensor:
    """Return x_{t-1} - x_t, with zeros before the first position: the token shift."""
    return with_previous(x, 1, cache, "last")[:, :-1] - x


def channels(width: int) -> Tensor:
    """Return the place of each channel, 0 to 1, from which start values are made."""
    return torch.linspace(0, 1, width)


class LowRank(nn.Module):
    """offset + f(x A) B, the ``lora`` of the RWKV papers; B alone is not 0 at the start.

    B starts uniform in [-0.01, 0.01] as RWKV-6's; the authors' RWKV-7 starts it orthogonal, scaled
    by 0.1. Plain parameters, so that a model's initialisation of linear layers leaves them small.

    Args:
        width: Channels of x and of the result.
        rank: Columns of A.
        inside: f.
        offset: Initial offset, [width]; None for none.
    """

    def __init__(
        self,
        width: int,
        rank: int,
        inside: Callable[[Tensor], Tensor] = torch.tanh,
        offset: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.inside = inside
        self.down = nn.Parameter(torch.zeros(width, rank))
        self.up = nn.Parameter(torch.empty(rank, width).uniform_(-0.01, 0.01))
        self.offset = None if offset is None else nn.Parameter(offset)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., width] to the same shape."""
        found = self.inside(x @ self.down) @ self.up
        return found if self.offset is None else self.offset + found
