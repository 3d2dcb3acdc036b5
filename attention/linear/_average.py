"""Averages of earlier values, channel by channel, with weights that are exponentials.

With z_t = log sum_{i <= t} exp(k_i - (t - i) w), the average
y_t = sum_{i <= t} exp(k_i - (t - i) w - z_t) v_i follows a recurrence without an overflow,

    z_t = log(exp(z_{t-1} - w) + exp(k_t)),
    y_t = exp(z_{t-1} - w - z_t) y_{t-1} + exp(k_t - z_t) v_t.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention.linear._decay import in_chunks
from attention.linear._scan import keep_state, kept_state, scanned
from attention.linear.mixer import RecurrentState

NOTHING = -1e30
"""z before the first position; of finite size, so that no gradient is a difference of infinities"""


def averages(
    k: Tensor, v: Tensor, rate: Tensor, cache: RecurrentState, chunk: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return y_t, and y and z of the position before.

    The cache keeps z as ``normaliser`` and y as ``state``.

    Args:
        k: Logarithms of weights, [B, L, C].
        v: Values, [B, L, C].
        rate: w, what the logarithm of a weight loses with each position, [C], not negative.
        cache: The earlier positions.
        chunk: Positions at once; None for position by position.

    Returns:
        y, y before and z before, [B, L, C] each.
    """
    earlier, before = kept(cache, k)
    z = _recurrent(k, rate, before) if chunk is None else _chunked(k, rate, before, chunk)
    z_before = torch.cat([before, z[:, :-1]], dim=1)
    # A copy: a view would keep the whole sequence in memory as long as the state lives.
    cache.tensors = {**cache.tensors, "normaliser": z[:, -1:].clone()}
    # A sum of weights is at least each of them, but for rounding.
    decay = (z_before - rate - z).clamp_max(0.0).exp()
    y = scanned(decay, (k - z).exp() * v, cache, chunk)
    return y, torch.cat([earlier, y[:, :-1]], dim=1), z_before


def kept(cache: RecurrentState, k: Tensor) -> tuple[Tensor, Tensor]:
    """Return y and z of a cache, [B, 1, C] each, or those before the first position of k."""
    before = cache.tensors.get("normaliser", torch.full_like(k[:, :1], NOTHING))
    return kept_state(cache, k[:, 0]).unsqueeze(1), before


def keep(cache: RecurrentState, y: Tensor, z: Tensor) -> None:
    """Replace y and z of a cache, [B, 1, C] each."""
    keep_state(cache, y.squeeze(1))
    cache.tensors = {**cache.tensors, "normaliser": z}


def _recurrent(k: Tensor, rate: Tensor, before: Tensor) -> Tensor:
    """Return z position by position: the specification."""
    found = []
    for k_t in k.split(1, dim=1):
        before = torch.logaddexp(before - rate, k_t)
        found.append(before)
    return torch.cat(found, dim=1)


def _chunked(k: Tensor, rate: Tensor, before: Tensor, chunk: int) -> Tensor:
    """Compute :func:`_recurrent` from sums over windows of 1, 2, 4, ... positions of a chunk."""
    length = k.shape[1]
    (z,) = in_chunks(chunk, k)
    size, window = z.shape[-2], 1
    while window < size:
        joined = torch.logaddexp(z[..., window:, :], z[..., :-window, :] - window * rate)
        z = torch.cat([z[..., :window, :], joined], dim=-2)
        window *= 2
    age = torch.arange(1, size + 1, device=k.device, dtype=k.dtype)[:, None] * rate
    found = []
    for part in z.unbind(1):
        whole = torch.logaddexp(before - age, part)
        found.append(whole)
        before = whole[:, -1:]
    return torch.cat(found, dim=1)[:, :length]
