"""RoPE of the layers of one forward pass: its angles once, and the kernel that turns heads."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention.positions import rotated, rotation

try:
    from attention.triton import ops
    from attention.triton import rope as fused
except ImportError:  # triton exists for Linux only
    fused = None  # type: ignore[assignment]


class Rotations:
    """RoPE's cosines and sines of one forward pass, which its layers share."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = {}

    def rope(self, x: Tensor, first: int, base: float) -> Tensor:
        """Return :func:`attention.positions.rope` of x [..., L, D], positions from ``first`` on.

        On a GPU that is one kernel, with angles in float32, where nothing traces the call.

        Raises:
            ValueError: D is odd.
        """
        if fused is not None and fused.serves(x) and not ops.traced(x):
            return fused.rotated(x, *self.angles(x, first, base, torch.float32))
        return rotated(x, *self.angles(x, first, base, x.dtype))

    def angles(
        self, x: Tensor, first: int, base: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return the cosines and sines by which x [..., L, D] is turned, each [L, D / 2]."""
        length, dim = x.shape[-2:]
        key = (first, length, dim, base, dtype, x.device)
        if key not in self._known:
            positions = torch.arange(first, first + length, device=x.device)
            self._known[key] = rotation(positions, dim, base, dtype)
        return self._known[key]


class Rotation(NamedTuple):
    """RoPE of one call that is left to its backend.

    Attributes:
        shared: The angles of the forward pass.
        first: Place of the first position.
        base: Base of the angles.
    """

    shared: Rotations
    first: int
    base: float

    def __call__(self, x: Tensor) -> Tensor:
        """Return x [..., L, D] turned."""
        return self.shared.rope(x, self.first, self.base)

    def angles(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the angles for a kernel, in float32."""
        return self.shared.angles(x, self.first, self.base, torch.float32)
