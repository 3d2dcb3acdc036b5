"""Linear attention with a positive feature map (Katharopoulos et al. 2020)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear.mixer import Mixer, RecurrentState, full_precision


class LinearAttention(Mixer):
    """o_t = phi(q_t) S_t / (phi(q_t) . z_t), S_t = sum phi(k_i)^T v_i, z_t = sum phi(k_i).

    phi(x) = 1 + elu(x) is positive, so the running normaliser is too. Positions are not encoded:
    the published layer leaves them to the input.
    """

    name = "linear"
    source = "Katharopoulos et al. 2020, Eqs. 9, 16 to 20; phi of Eq. 7"
    about = "Softmax's exponential replaced by a product of positive features, 1 + elu."

    def __init__(self, n_head: int, head_dim: int, chunk: int = 64, **args: Any) -> None:
        super().__init__(n_head, head_dim, chunk, **args)
        self.query, self.key, self.value, self.project = (
            nn.Linear(self.width, self.width, bias=False) for _ in range(4)
        )

    def _mix(self, x: Tensor, cache: RecurrentState, stepwise: bool) -> Tensor:
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        with full_precision(x):
            q, k = functional.elu(q) + 1, functional.elu(k) + 1
            # A column of ones makes the normaliser one more value channel of the same sum.
            v = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
            state = cache.tensors.get("state", v.new_zeros(*v.shape[:2], k.shape[-1], v.shape[-1]))
            if stepwise:
                total, state = recurrent(q, k, v, state)
            else:
                total, state = chunked(q, k, v, state, self.chunk)
            cache.tensors = {"state": state}
            # Features below the rounding of 1 + elu are 0, and so may their sum be.
            mixed = total[..., :-1] / total[..., -1:].clamp_min(1e-6)
        return self.project(self._merge(mixed, x))


def recurrent(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return q_t S_t, S_t = S_{t-1} + k_t^T v_t, position by position.

    Args:
        q: [B, H, L, K].
        k: [B, H, L, K].
        v: [B, H, L, V].
        state: S before the first position, [B, H, K, V].

    Returns:
        [B, H, L, V], and S after the last position.
    """
    found = []
    for t in range(q.shape[-2]):
        state = state + k[..., t, :, None] * v[..., t, None, :]
        found.append((q[..., t, None, :] @ state).squeeze(-2))
    return torch.stack(found, dim=-2), state


def chunked(q: Tensor, k: Tensor, v: Tensor, state: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """Do what :func:`recurrent` does chunk by chunk: a triangle inside, the state before it."""
    found = []
    for rows in zip(*(x.split(chunk, dim=-2) for x in (q, k, v)), strict=True):
        q_chunk, k_chunk, v_chunk = rows
        found.append((q_chunk @ k_chunk.mT).tril() @ v_chunk + q_chunk @ state)
        state = state + k_chunk.mT @ v_chunk
    return torch.cat(found, dim=-2), state


MIXER = LinearAttention
