"""Position encodings applied to queries and keys."""

from __future__ import annotations

import torch
from torch import Tensor


def rope(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    """Rotate queries or keys by their positions (Su et al. 2021, RoPE, half-split pairing).

    Channel pair (j, j + D/2) turns by position * base^(-2j/D), so that the product of a query and
    a key depends on the distance between their positions alone.

    Args:
        x: [..., L, D] with even D.
        positions: Absolute positions, [L].
        base: Largest wavelength divided by 2 pi.

    Raises:
        ValueError: D is odd.
    """
    dim = x.shape[-1]
    if dim % 2:
        raise ValueError(f"RoPE needs an even head_dim, got {dim}")
    exponents = torch.arange(0, dim, 2, device=x.device, dtype=torch.float32) / dim
    angles = positions.to(torch.float32)[:, None] * base**-exponents
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)
