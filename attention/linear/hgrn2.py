"""HGRN2 (Qin et al. 2024, arXiv:2404.07904)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear import fla
from attention.linear._bound import BoundedBelow
from attention.linear._decay import decayed_attention
from attention.linear._norm import normalised
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision


class HGRN2(BoundedBelow):
    """h_t = diag(f_t) h_{t-1} + (1 - f_t)^T i_t, y_t = o_t h_t, the state [K, V] (Sect. 3).

    The input gate is the complement of the forget gate, and the outer product expands the state
    of a gated linear RNN without further weights: gated linear attention with 1 - f as the key
    and the output gate as the query. f = lower + (1 - lower) sigmoid(x W_f), o = SiLU(x W_o), and
    RMSNorm over the width before the last projection, as in the authors' code.

    Arguments:
        lower_bound: The smallest forget gate, in [0, 1). None for layer / n_layer: the paper
            learns bounds that rise with depth, which start there.
        causal: False for sums in both directions (BiHgru2_1d of the authors' hgru2-pytorch).
    """

    name = "hgrn2"
    source = "Qin et al. 2024 (arXiv:2404.07904), Sect. 3"
    about = "Gated linear attention whose keys are what the forget gates leave open."
    kept = "H D^2"
    deviations = (
        "The bound is fixed at layer / n_layer, where the paper's learned one starts. Keys of "
        "D channels; in the code 128."
    )
    kernels: ClassVar = {"fla": fla.refusal}
    arguments: ClassVar = {"lower_bound": None, "causal": True}

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.query, self.forget, self.value, self.project = (
            nn.Linear(self.width, self.width, bias=False) for _ in range(4)
        )
        self.norm = nn.RMSNorm(self.width, eps=1e-5)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, forget, v = (self._split(layer(x)) for layer in (self.query, self.forget, self.value))
        with full_precision(x):
            # In logarithms, and 1 - f from the other side: a gate near 0 or 1 keeps its digits.
            log_decay = functional.logsigmoid(forget)
            if self.lower_bound:
                bound = torch.full_like(log_decay, math.log(self.lower_bound))
                log_decay = torch.logaddexp(bound, math.log1p(-self.lower_bound) + log_decay)
            k = (1 - self.lower_bound) * torch.sigmoid(-forget)
            q = functional.silu(q)
            mixed = decayed_attention(q, k, v, log_decay, cache, chunk)
            if not self.causal:
                q, k, v, log_decay = (part.flip(2) for part in (q, k, v, log_decay))
                back = decayed_attention(q, k, v, log_decay, RecurrentState(), chunk)
                mixed = mixed + back.flip(2)
            mixed = normalised(self.norm, self._merge(mixed, like=mixed))
        return self.project(mixed.to(x.dtype))


MIXER = HGRN2
