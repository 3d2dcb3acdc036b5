"""gMLP (Liu et al. 2021, arXiv:2105.08050)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._bounded import Bounded, triangle_rows, triangle_size
from attention.linear._fft import with_past
from attention.linear._norm import normalised
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision

EXPAND = 6
"""Channels between the linear maps per channel of the model: 3,072 to 512 in the paper."""


class GatedMLP(Bounded):
    """u * (W norm(v) + b), with u and v the halves of GELU(x U), and a projection (Sects. 2, 2.1).

    W mixes places: y_t = u_t * (sum_{j <= t} W_tj norm(v)_j + b_t), the same for all channels. W
    starts near 0 and b at 1, so that the layer starts as an MLP. Heads only set the width.

    Arguments:
        max_length: Rows of W.
    """

    name = "gmlp"
    source = "Liu et al. 2021 (arXiv:2105.08050), Sects. 2 and 2.1: spatial gating unit"
    about = "An MLP whose gate is a linear map over places, the same for all sequences."
    kept = "3 H D (L - 1)"
    arguments: ClassVar = {"max_length": 1024}
    deviations = (
        "the lower triangle of W, for a causal model; beside the GPT's MLP, where the paper's "
        "block stands in place of attention and MLP: mlp none is its model. The paper says near 0 "
        "of W's start: uniform below 0.001 / max_length."
    )
    quadratic: ClassVar = True

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        wide, length = EXPAND * self.width, self.args["max_length"]
        self.inputs = nn.Linear(self.width, wide)
        self.norm = nn.LayerNorm(wide // 2)
        start = torch.empty(triangle_size(length)).uniform_(-1e-3 / length, 1e-3 / length)
        self.places = nn.Parameter(start)
        self.offsets = nn.Parameter(torch.ones(length))
        self.project = nn.Linear(wide // 2, self.width)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        first, found = cache.length, []
        u, v = functional.gelu(self.inputs(x)).chunk(2, dim=-1)
        with full_precision(x):
            v = normalised(self.norm, v.to(torch.promote_types(x.dtype, torch.float32)))
            v = with_past(v, self.args["max_length"] - 1, cache, "recent_gates")
            places, offsets = self.places.to(v.dtype), self.offsets.to(v.dtype)
            for part in u.split(chunk or 1, dim=1):
                last = first + part.shape[1]
                rows = triangle_rows(places, first, part.shape[1], 0.0)
                found.append(part * (rows @ v[:, :last] + offsets[first:last, None]))
                first = last
        return self.project(torch.cat(found, dim=1).to(x.dtype))


MIXER = GatedMLP
