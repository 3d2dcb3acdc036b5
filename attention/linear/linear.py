"""Linear attention with a positive feature map (Katharopoulos et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear import fla
from attention.linear._decay import decayed_attention
from attention.linear.mixer import Mixer, RecurrentState, full_precision
from attention.positions import rope
from attention.scalars import check_positive


class LinearAttention(Mixer):
    """o_t = phi(q_t) S_t / (phi(q_t) . z_t), S_t = sum phi(k_i)^T v_i, z_t = sum phi(k_i).

    phi(x) = 1 + elu(x) is positive, so the running normaliser is too. phi(q) and phi(k) are
    rotated in S, not in z (Su et al. 2021, Eq. 19): without that the sums know no order.

    Arguments:
        rope_base: Base of the rotary positions; None for none, as published, where positions are
            added to the input.
    """

    name = "linear"
    source = "Katharopoulos et al. 2020, Eqs. 7 and 12"
    about = "Softmax's exponential replaced by a product of positive features, 1 + elu."
    kept = "H (D^2 + D)"
    kernels: ClassVar = {"fla": fla.head_refusal}
    arguments: ClassVar = {"rope_base": 10_000.0}

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

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        with full_precision(x):
            q, k = features(q), features(k)
            normaliser = cache.tensors.get("normaliser", 0) + k.cumsum(dim=-2)
            # A copy: a view would keep the whole sequence in memory as long as the state lives.
            cache.tensors = {**cache.tensors, "normaliser": normaliser[..., -1:, :].clone()}
            total = (q * normaliser).sum(dim=-1, keepdim=True)
            # Features of very negative numbers are 0, and so may their sum be.
            total = torch.where(total < torch.finfo(total.dtype).tiny, 1, total)
            if (base := self.args["rope_base"]) is not None:
                positions = torch.arange(x.shape[1], device=x.device) + cache.length
                q, k = rope(q, positions, base), rope(k, positions, base)
            mixed = decayed_attention(q, k, v, torch.zeros_like(total), cache, chunk) / total
        return self.project(self._merge(mixed, x))


def features(x: Tensor) -> Tensor:
    """Return 1 + elu(x) without its rounding: e^x of a very negative number is not 0."""
    return functional.relu(x) + x.clamp_max(0).exp()


MIXER = LinearAttention
