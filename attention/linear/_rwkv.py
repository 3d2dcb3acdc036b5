"""What RWKV-6 and RWKV-7 share: the token shift, low-rank functions and the output norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention.linear._convolution import with_previous
from attention.linear.mixer import RecurrentState

DEPTH = 0.5
"""Published start values depend on the depth of the layer, 0 to 1; a mixer takes the middle."""


def change_since_last(x: Tensor, cache: RecurrentState) -> Tensor:
    """Return x_{t-1} - x_t, with zeros before the first position: the token shift."""
    return with_previous(x, 1, cache, "last")[:, :-1] - x


def channels(width: int) -> Tensor:
    """Return the place of each channel, 0 to 1, from which start values are made."""
    return torch.linspace(0, 1, width)


class LowRank(nn.Module):
    """offset + f(x A) B, the ``lora`` of the RWKV papers; B alone is not 0 at the start.

    Plain parameters, so that a model's initialisation of linear layers leaves them small.

    Args:
        width: Channels of x and of the result.
        rank: Columns of A.
        inside: f.
        offset: Where the offset starts, [width]; None for none.
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


def output_norm(n_head: int, width: int) -> nn.GroupNorm:
    """Return the norm of the heads, with the papers' epsilon."""
    return nn.GroupNorm(n_head, width, eps=64e-5)


def by_position(norm: nn.GroupNorm, x: Tensor) -> Tensor:
    """Apply a group norm to the channels of each position of [B, L, C] alone."""
    return norm(x.flatten(0, 1)).view_as(x)
