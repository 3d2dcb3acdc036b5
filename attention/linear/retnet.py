"""Retention (Sun et al. 2023, arXiv:2307.08621)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear import fla
from attention.linear._decay import decayed_attention
from attention.linear._norm import normalised
from attention.linear._projection import Projection
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision
from attention.positions import rope

EXPAND = 2
"""Value channels per key channel, as published (Sect. 3.1, parameter allocation)."""


class RetNet(Mixer):
    """S_n = gamma S_{n-1} + K_n^T V_n, o_n = Q_n S_n, with Q and K rotated (Eqs. 5, 6).

    gamma = 1 - 2^(-5 - h) is fixed, one number per head h = 0, 1, ...; the layer returns
    (swish(X W_G) * GroupNorm(o)) W_O with a group per head (Eq. 8): 8 width^2 weights. The
    rotation by the position n, e^(i n theta), is RoPE's. K is divided by sqrt(d) as published; the
    paper's other two scalings of the scores change nothing behind the GroupNorm but by its epsilon
    and are left out.
    """

    name = "retnet"
    source = "Sun et al. 2023 (arXiv:2307.08621), Eqs. 5, 6, 8"
    about = "Linear attention with RoPE and a fixed exponential decay per head."
    kept = "2 H D^2"
    deviations = (
        "LayerNorm without weights (the paper has GroupNorm, later code RMSNorm). RoPE's "
        "angles are 10000^(-2i/d) in split halves; torchscale's linspace(0, 1), interleaved. "
        "No small start of the projections (there a gain of 2^-2.5). retnet_published has "
        "torchscale's rotations, scalings and start."
    )
    kernels: ClassVar = {"fla": fla.head_refusal}

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        if head_dim % 2:
            raise ValueError(f"{self.name} rotates pairs of channels: head_dim {head_dim} is odd")
        width, wide = self.width, EXPAND * self.width
        self.query, self.key = (self._linear(width, width) for _ in range(2))
        self.value, self.gate = (self._linear(width, wide) for _ in range(2))
        self.norm = nn.LayerNorm(EXPAND * head_dim, elementwise_affine=False)
        self.project = self._linear(wide, width)

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head."""
        return head_dim, EXPAND * head_dim

    def _linear(self, inputs: int, outputs: int) -> nn.Linear | Projection:
        return nn.Linear(inputs, outputs, bias=False)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        with full_precision(x):
            positions = torch.arange(cache.length, cache.length + x.shape[1], device=x.device)
            q, k = rope(q, positions), rope(k, positions) * self.head_dim**-0.5
            heads = torch.arange(self.n_head, device=x.device, dtype=q.dtype)
            log_decay = torch.log1p(-(2.0 ** (-5 - heads)))[:, None, None].expand_as(q[..., :1])
            mixed = normalised(self.norm, decayed_attention(q, k, v, log_decay, cache, chunk))
        return self.project(functional.silu(self.gate(x)) * self._merge(mixed, x))


MIXER = RetNet
