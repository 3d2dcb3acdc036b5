"""A linear mixer within a window: it runs on the rows that it sees as if there were no others."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention.linear import Mixer


@dataclass
class Seen:
    """The inputs of a windowed mixer so far.

    Attributes:
        inputs: [B, length, width]; None before the first position.
    """

    inputs: Tensor | None = None

    @property
    def length(self) -> int:
        """Number of positions seen."""
        return 0 if self.inputs is None else self.inputs.shape[1]


class Windowed(nn.Module):
    """A mixer that sees the last positions of a sequence and its first one alone.

    A state sums up all positions, and none can be masked in it. So the mixer runs anew for each
    position, from an empty state, on the first position of the sequence and the last ``window``:
    as attention does behind the mask of such a window, but for a mixer's own sense of distance, to
    which the first position is next to the others. A sequence takes the time of one
    ``window + 1`` times as long, and so does each further part of one that is decoded with a cache.

    Args:
        mixer: The mixer; it is causal.
        window: Positions up to its own that each position sees, beside the first.
    """

    def __init__(self, mixer: Mixer, window: int) -> None:
        super().__init__()
        self.mixer, self.window = mixer, window

    def new_cache(self) -> Seen:
        """Return the cache before the first position."""
        return Seen()

    def forward(self, x: Tensor, cache: Seen | None = None) -> Tensor:
        """Map [B, T, width] to the same shape; with a cache, x follows the positions in it."""
        known = 0
        if cache is not None:
            known = cache.length
            x = x if cache.inputs is None else torch.cat([cache.inputs, x], dim=1)
            cache.inputs = x
        whole = self.window + 1  # so many positions leave none out
        early = self.mixer(x[:, :whole])
        if x.shape[1] <= whole:
            return early[:, known:]
        last = x.unfold(1, self.window, 1)[:, 2:].transpose(-1, -2)  # [B, n, window, width]
        first = x[:, None, :1].expand(-1, last.shape[1], -1, -1)
        seen = torch.cat([first, last], dim=2)
        late = self.mixer(seen.flatten(0, 1))[:, -1].unflatten(0, seen.shape[:2])
        return torch.cat([early, late], dim=1)[:, known:]
