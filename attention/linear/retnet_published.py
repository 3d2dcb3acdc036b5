"""Retention as published, with its three scalings and start values (Sun et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._decay import decayed_attention
from attention.linear._norm import normalised
from attention.linear._projection import Projection
from attention.linear.mixer import RecurrentState
from attention.linear.retnet import EXPAND, RetNet
from attention.parts.precision import full_precision

GAIN = 2**-2.5
"""Gain of Glorot's start of queries, keys, values and gates, as in the authors' code."""


class RetNetPublished(RetNet):
    """o_n = sum_{m <= n} R_nm V_m / max(|sum_m R_nm|, 1), R_nm = Q_n . K_m D_nm (Eqs. 5 to 8).

    D_nm = gamma^(n - m) / sqrt(sum_{i <= n} gamma^(n - i)) and gamma = 1 - 2^(-5 - h) of head
    h = 0, 1, ...; K is divided by sqrt(d). These are the three scalings of Sect. 2.2, of which the
    norm of a head leaves what its epsilon is worth. As in the authors' code (torchscale), Q and K
    are rotated in neighbouring pairs of channels by the frequencies 10000^-(j / (d/2 - 1)),
    j = 0, 1, ..., the last scaling has no gradient, and weights start as Glorot's, smaller by
    2^-2.5 but for the last projection.
    """

    name = "retnet_published"
    source = "Sun et al. 2023 (arXiv:2307.08621), Sects. 2.1 and 2.2; torchscale"
    about = "Retention with the scalings, rotations and start values of its authors."
    kept = "H (2 D^2 + D)"
    deviations = (
        "the first release's LayerNorm of a head, without weights, for the paper's GroupNorm "
        "(torchscale has RMSNorm today); a GPT's block around it: no DeepNorm."
    )

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        for layer in (self.query, self.key, self.value, self.gate):
            nn.init.xavier_uniform_(layer.weight, gain=GAIN)
        nn.init.xavier_uniform_(self.project.weight)

    def _linear(self, inputs: int, outputs: int) -> Projection:
        return Projection(inputs, outputs)

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head, with the one that sums a row."""
        return head_dim, EXPAND * head_dim + 1

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        with full_precision(x):
            positions = torch.arange(x.shape[1], device=x.device, dtype=q.dtype) + cache.length
            q, k = turned(q, positions), turned(k, positions) * self.head_dim**-0.5
            heads = torch.arange(self.n_head, device=x.device, dtype=q.dtype)
            log_decay = torch.log1p(-(2.0 ** (-5 - heads)))[:, None, None]
            # The sum of a row of D, a geometric series; a further value of 1 sums the row of R.
            row = torch.expm1(log_decay * (positions + 1)[:, None]) / torch.expm1(log_decay)
            v = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
            decays = log_decay.expand_as(q[..., :1])
            mixed = decayed_attention(q, k, v, decays, cache, chunk) / row.sqrt()
            mixed = mixed[..., :-1] / mixed[..., -1:].detach().abs().clamp_min(1.0)
            mixed = normalised(self.norm, mixed)
        return self.project(functional.silu(self.gate(x)) * self._merge(mixed, x))


def turned(x: Tensor, positions: Tensor) -> Tensor:
    """Rotate neighbouring pairs of channels of [..., L, D] by their positions, [L]."""
    pairs = x.shape[-1] // 2
    share = torch.linspace(0, 1, pairs, device=x.device, dtype=x.dtype)
    angles = positions[:, None] * (-math.log(10_000.0) * share).exp()
    first, second = x[..., ::2], x[..., 1::2]
    cosine, sine = angles.cos(), angles.sin()
    both = (first * cosine - second * sine, second * cosine + first * sine)
    return torch.stack(both, dim=-1).flatten(-2)


MIXER = RetNetPublished
