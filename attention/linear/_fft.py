"""Causal convolution with filters as long as a sequence, by the fast Fourier transform."""

from __future__ import annotations

import torch
from torch import Tensor

from attention.linear._convolution import with_previous
from attention.linear.mixer import RecurrentState


def convolved(x: Tensor, taps: Tensor, last: int, chunk: int | None) -> Tensor:
    """Return y_t = sum over j of taps_j x_{t-j} at the last positions.

    Args:
        x: [..., L].
        taps: [..., K], K <= L; the other dimensions are broadcast with those of x.
        last: Number of positions that are asked for.
        chunk: None for position by position, a number for all at once.

    Returns:
        [..., last].
    """
    if chunk is None:
        return by_steps(x, taps, last)
    return convolution(x, taps)[..., x.shape[-1] - last :]


def convolution(x: Tensor, taps: Tensor) -> Tensor:
    """Return the causal convolution of x [..., L] with taps [..., K] at all positions."""
    length = x.shape[-1]
    # A power of 2 is fast, and long enough that the end does not wrap round to the beginning.
    size = 1 << (length + taps.shape[-1] - 2).bit_length()
    spectrum = torch.fft.rfft(x, n=size) * torch.fft.rfft(taps, n=size)
    return torch.fft.irfft(spectrum, n=size)[..., :length]


def by_steps(x: Tensor, taps: Tensor, last: int) -> Tensor:
    """Compute :func:`convolved` as its sums: the specification."""
    found = []
    for t in range(x.shape[-1] - last, x.shape[-1]):
        count = min(t + 1, taps.shape[-1])
        found.append((x[..., t + 1 - count : t + 1] * taps[..., :count].flip(-1)).sum(-1))
    return torch.stack(found, dim=-1)


def with_past(x: Tensor, count: int, cache: RecurrentState, name: str) -> Tensor:
    """Return x [B, L, C] behind those of the ``count`` inputs before it that there were.

    The last ``count`` inputs, with zeros before the first, are kept in the cache under ``name``.
    """
    joined = with_previous(x, count, cache, name)
    return joined[:, max(0, count - cache.length) :]
