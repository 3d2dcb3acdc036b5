"""Linear attention with a positive feature map (Katharopoulos et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear.mixer import Mixer, RecurrentState, check_rope_base, full_precision
from attention.positions import rope


class LinearAttention(Mixer):
    """o_t = phi(q_t) S_t / (phi(q_t) . z_t), S_t = sum phi(k_i)^T v_i, z_t = sum phi(k_i).

    phi(x) = 1 + elu(x) is positive, so the running normaliser is too. The published layer leaves
    positions to the input.

    Arguments:
        rope_base: With a number, phi(q) and phi(k) are rotated in S, not in z (Su et al. 2021,
            Eq. 19).
    """

    name = "linear"
    source = "Katharopoulos et al. 2020, Eqs. 7 and 12"
    about = "Softmax's exponential replaced by a product of positive features, 1 + elu."
    arguments: ClassVar = {"rope_base": None}

    def __init__(
        self, n_head: int, head_dim: int, chunk: int = 64, layer: int = 0, **args: Any
    ) -> None:
        super().__init__(n_head, head_dim, chunk, layer, **args)
        if self.args["rope_base"] is not None and head_dim % 2:
            raise ValueError(f"RoPE needs an even head_dim, got {head_dim}")
        self.query, self.key, self.value, self.project = (
            nn.Linear(self.width, self.width, bias=False) for _ in range(4)
        )

    @classmethod
    def checked(cls, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments, as in :meth:`Mixer.checked`.

        Raises:
            ValueError: ``rope_base`` is neither None nor a positive number.
        """
        checked = super().checked(args)
        if checked["rope_base"] is not None:
            check_rope_base(cls.name, checked["rope_base"])
        return checked

    def _mix(self, x: Tensor, cache: RecurrentState, stepwise: bool) -> Tensor:
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        with full_precision(x):
            q, k = functional.elu(q) + 1, functional.elu(k) + 1
            normaliser = cache.tensors.get("normaliser", 0) + k.cumsum(dim=-2)
            # Features below the rounding of 1 + elu are 0, and so may their sum be.
            total = (q * normaliser).sum(dim=-1, keepdim=True).clamp_min(1e-6)
            if (base := self.args["rope_base"]) is not None:
                positions = torch.arange(x.shape[1], device=x.device) + cache.length
                q, k = rope(q, positions, base), rope(k, positions, base)
            state = cache.tensors.get("state", v.new_zeros(*v.shape[:2], k.shape[-1], v.shape[-1]))
            if stepwise:
                mixed, state = recurrent(q, k, v, state)
            else:
                mixed, state = chunked(q, k, v, state, self.chunk)
            cache.tensors = {"state": state, "normaliser": normaliser[..., -1:, :]}
        return self.project(self._merge(mixed / total, x))


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
