"""Attention by features of queries and keys, o_t = phi(q_t) S_t / (phi(q_t) . z_t)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear import fla
from attention.linear._decay import decayed_attention
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision
from attention.positions import rope
from attention.scalars import check_positive


class FeatureAttention(Mixer):
    """S_t = sum phi(k_i)^T v_i and z_t = sum phi(k_i), with features that are not negative.

    Queries and keys are rotated before the features are made, as softmax attention has them
    rotated: the product of features stands for exp of their product.

    Attributes:
        rotates_features: Whether features are rotated instead, in S and not in z.
    """

    rotates_features: ClassVar[bool] = False
    arguments: ClassVar[Mapping[str, Any]] = {"rope_base": 10_000.0}
    kernels: ClassVar = {"fla": fla.head_refusal}

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        if self.args["rope_base"] is not None and head_dim % 2:
            raise ValueError(f"RoPE needs an even head_dim, got {head_dim}")
        self.query, self.key, self.value, self.project = (
            nn.Linear(self.width, self.width, bias=False) for _ in range(4)
        )

    @classmethod
    def checked(cls, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments, as in :meth:`Mixer.checked`."""
        checked = super().checked(args)
        if checked["rope_base"] is not None:
            check_positive(f"rope_base of {cls.name}", checked["rope_base"])
        return checked

    @abstractmethod
    def _features(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return phi of queries and of keys, [B, H, L, N] each, of [B, H, L, D]."""

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        with full_precision(x):
            if not self.rotates_features:
                q, k = self._rotated(q, k, cache.length)
            q, k = self._features(q, k)
            total = running_total(q, k, cache)
            # Features of very distant vectors round to 0, and so may their sum.
            total = torch.where(total < torch.finfo(total.dtype).tiny, 1, total)
            if self.rotates_features:
                q, k = self._rotated(q, k, cache.length)
            mixed = decayed_attention(q, k, v, torch.zeros_like(total), cache, chunk) / total
        return self.project(self._merge(mixed, x))

    def _rotated(self, q: Tensor, k: Tensor, start: int) -> tuple[Tensor, Tensor]:
        if (base := self.args["rope_base"]) is None:
            return q, k
        positions = torch.arange(q.shape[-2], device=q.device) + start
        return rope(q, positions, base), rope(k, positions, base)


def running_total(q: Tensor, k: Tensor, cache: RecurrentState) -> Tensor:
    """Return phi(q_t) . z_t, [B, H, L, 1], after the ``normaliser`` of a cache, which is replaced.

    Args:
        q: Features of queries, [B, H, L, N].
        k: Features of keys, [B, H, L, N].
        cache: The state before the first position.
    """
    normaliser = cache.tensors.get("normaliser", 0) + k.cumsum(dim=-2)
    # A copy: a view would keep the whole sequence in memory as long as the state lives.
    cache.tensors = {**cache.tensors, "normaliser": normaliser[..., -1:, :].clone()}
    return (q * normaliser).sum(dim=-1, keepdim=True)
