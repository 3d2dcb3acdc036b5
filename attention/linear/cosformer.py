"""cosFormer (Qin et al. 2022, arXiv:2202.08791)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear import fla
from attention.linear._bounded import Bounded
from attention.linear._decay import decayed_attention
from attention.linear._kernel import running_total
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision

SMALLEST = 1e-6
"""The least sum of a row that is divided by, as in the authors' code."""


class CosFormer(Bounded):
    """o_t = sum_i w_ti v_i / sum_i w_ti, w_ti = relu(q_t) . relu(k_i) cos(pi (t - i) / (2 M)).

    The cosine of a difference is a sum of two products: features of twice as many
    channels, linear attention. M is at least the length, so that no weight is negative.

    Arguments:
        max_length: M, the longest sequence.
    """

    name = "cosformer"
    source = "Qin et al. 2022 (arXiv:2202.08791), Sect. 3: cos-based re-weighting"
    about = "Linear attention with ReLU features, weighted by a cosine of the distance."
    kept = "2 H (D^2 + D)"
    kernels: ClassVar = {"fla": fla.head_refusal}
    arguments: ClassVar = {"max_length": 1024}
    deviations = (
        "M is an argument; in the authors' code it is the length of the sequence at hand, which a "
        "causal model does not know. Linear maps without offsets."
    )

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.query, self.key, self.value, self.project = (
            nn.Linear(self.width, self.width, bias=False) for _ in range(4)
        )

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head."""
        return 2 * head_dim, head_dim

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        with full_precision(x):
            places = torch.arange(x.shape[1], device=x.device, dtype=q.dtype) + cache.length
            angles = places[:, None] * (math.pi / (2 * self.args["max_length"]))
            q, k = (_features(functional.relu(z), angles) for z in (q, k))
            total = running_total(q, k, cache).clamp_min(SMALLEST)
            mixed = decayed_attention(q, k, v, torch.zeros_like(total), cache, chunk) / total
        return self.project(self._merge(mixed, x))


def _features(x: Tensor, angles: Tensor) -> Tensor:
    """Return [x cos(angle), x sin(angle)] of x [..., L, D] and angles [L, 1]."""
    return torch.cat([x * angles.cos(), x * angles.sin()], dim=-1)


MIXER = CosFormer
