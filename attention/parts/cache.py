"""The cache of a layer of attention: tensors of the positions seen so far, for decoding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class KeyValueCache:
    """Keys, values and other tensors of the positions seen so far, for decoding.

    Each tensor lies in one that is twice as long when it grows, so that a step copies the new
    positions alone. Where a gradient is recorded tensors are joined instead: nothing that it may
    need is written over.

    Attributes:
        length: Number of positions seen.
    """

    length: int = 0
    _kept: tuple[Tensor, ...] = ()

    def __copy__(self) -> KeyValueCache:
        """Return a cache that can be continued apart from this one."""
        return KeyValueCache(self.length, tuple(x[:, :, : self.length] for x in self._kept))

    def append(self, *new: Tensor, recorded: bool = False) -> tuple[Tensor, ...]:
        """Add positions, tensors [B, H_kv, L, ...], and return those of all positions.

        They are valid until the next call. Each call gives the same tensors in the same order.

        Args:
            *new: The tensors.
            recorded: Whether the queries that meet them have a gradient, which needs the keys.

        Raises:
            ValueError: The number of sequences is another one.
        """
        if self._kept and len(self._kept[0]) != len(new[0]):
            raise ValueError(
                f"cache holds {len(self._kept[0])} sequences, x has {len(new[0])}: use new_cache()"
            )
        before, self.length = self.length, self.length + new[0].shape[2]
        recorded = recorded or any(x.requires_grad for x in (*new, *self._kept))
        if torch.is_grad_enabled() and recorded:
            known = [x[:, :, :before] for x in self._kept] or [x[:, :, :0] for x in new]
            self._kept = tuple(torch.cat(x, dim=2) for x in zip(known, new, strict=True))
            return self._kept
        room = self._kept[0].shape[2] if self._kept else 0
        if self.length > room or not self._kept:
            room = max(self.length, 2 * room)
            longer = tuple(x.new_empty([*x.shape[:2], room, *x.shape[3:]]) for x in new)
            for x, old in zip(longer, self._kept, strict=bool(self._kept)):
                x[:, :, :before] = old[:, :, :before]
            self._kept = longer
        for x, part in zip(self._kept, new, strict=True):
            x[:, :, before : self.length] = part
        return tuple(x[:, :, : self.length] for x in self._kept)
