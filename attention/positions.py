"""Position encodings: of queries and keys, of inputs, and as biases of the scores."""

from __future__ import annotations

import math

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
    return rotated(x, *rotation(positions.to(x.device), x.shape[-1], base, x.dtype))


def rotation(positions: Tensor, dim: int, base: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the cosine and sine of each angle by which :func:`rope` turns, each [L, D / 2].

    Raises:
        ValueError: D is odd.
    """
    if dim % 2:
        raise ValueError(f"RoPE needs an even head_dim, got {dim}")
    precision = torch.promote_types(dtype, torch.float32)
    exponents = torch.arange(0, dim, 2, device=positions.device, dtype=precision) / dim
    angles = positions.to(precision)[:, None] * base**-exponents
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Return x [..., L, D] turned by these angles."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)


def dynamic_ntk_base(
    base: float, head_dim: int, length: int, train_length: int, factor: float = 1.0
) -> float:
    """Return the RoPE base of dynamic NTK scaling for a sequence longer than those trained on.

    base' = base (s L / L_train - (s - 1))^(D / (D - 2)) for L > L_train, else ``base``.

    Args:
        base: The trained base.
        head_dim: D, more than 2.
        length: L, the current length.
        train_length: L_train.
        factor: s.

    Raises:
        ValueError: A length is not positive, or ``head_dim`` is not above 2.
    """
    if length < 1 or train_length < 1:
        raise ValueError(f"lengths must be positive, got {length} and {train_length}")
    if head_dim <= 2:
        raise ValueError(f"dynamic NTK needs head_dim > 2, got {head_dim}")
    if length <= train_length:
        return base
    stretch = factor * length / train_length - (factor - 1)
    return base * stretch ** (head_dim / (head_dim - 2))


def sinusoidal(length: int, width: int, base: float = 10_000.0, first: int = 0) -> Tensor:
    """Return absolute sine and cosine positions, [length, width] (Vaswani et al. 2017).

    Args:
        length: Number of positions.
        width: Channels.
        base: Largest wavelength divided by 2 pi.
        first: The first position.

    Raises:
        ValueError: ``width`` is odd.
    """
    if width % 2:
        raise ValueError(f"sinusoidal positions need an even width, got {width}")
    exponents = torch.arange(0, width, 2, dtype=torch.float32) / width
    positions = torch.arange(first, first + length, dtype=torch.float32)
    angles = positions[:, None] * base**-exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def alibi_slopes(n_head: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return ALiBi's slope of each head, [n_head] (Press et al. 2021).

    2^(-8 h / H), h = 1..H, for a power of two; otherwise the series of the next lower power of
    two, filled up with every other slope of twice as many heads, as published.
    """
    power = 2 ** math.floor(math.log2(n_head))
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    slopes += [2 ** (-4 * h / power) for h in range(1, 2 * (n_head - power), 2)]
    return torch.tensor(slopes, dtype=dtype)


def distance_bias(table: Tensor, distance: Tensor, beyond: str) -> Tensor:
    """Look up a learned bias per head and distance.

    Args:
        table: [H, max_distance].
        distance: Non-negative distances, [Lq, Lk].
        beyond: Rule for larger distances: ``zero``, that of the ``last``, or ``refuse``.

    Returns:
        [H, Lq, Lk].

    Raises:
        ValueError: A distance is beyond the table and the rule is ``refuse``.
    """
    longest = table.shape[-1]
    outside = distance >= longest
    if beyond == "refuse" and bool(outside.any()):
        raise ValueError(
            f"a distance of {int(distance.max())} is beyond the {longest} learned biases; set "
            "beyond to zero or last, or raise max_distance"
        )
    bias = table[:, distance.clamp_max(longest - 1)]
    return bias.masked_fill(outside, 0.0) if beyond == "zero" else bias
