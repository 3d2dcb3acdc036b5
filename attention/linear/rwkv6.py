"""RWKV-6, "Finch" (Peng et al. 2024, arXiv:2404.05892)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear import fla
from attention.linear._decay import decayed_attention
from attention.linear._rwkv import RWKV, LowRank, change_since_last, channels
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision

SHIFT_RANK, DECAY_RANK = 32, 64
"""Ranks of the data-dependent interpolations and of the decay, as published."""


class RWKV6(RWKV):
    """S_t = diag(w_t) S_{t-1} + k_t^T v_t, o_t = r_t (S_{t-1} + diag(u) k_t^T v_t) (Finch).

    The present token has a weight u of its own. Receptance r, key, value, gate g and decay each
    see an interpolation of x_t and x_{t-1} that the input chooses ("ddlerp"):
    x_t + (x_{t-1} - x_t) lora(x_t + (x_{t-1} - x_t) mu). The decay, per channel and position, is
    w = exp(-exp(lora(.))), and the layer returns (GroupNorm(o) * SiLU(g)) W_o.
    """

    name = "rwkv6"
    source = "Peng et al. 2024 (arXiv:2404.05892), Finch: token shift, time mixing"
    about = "Linear attention with decays per channel, a bonus for the present and token shift."
    kept = "H (D^2 + D)"
    deviations = (
        "Projections start as the model's other linear layers do; there r, k and v are "
        "orthogonal (k by 0.1) and the output 0."
    )
    kernels: ClassVar = {"fla": fla.refusal}
    undecayed = ("bonus",)

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        width, place = self.width, channels(self.width)
        starts = {
            "receptance": self._shift_start(0.5),
            "key": self._shift_start(),
            "value": self._shift_start() - 0.3 * self.depth,
            "gate": self._shift_start(0.5),
            "decay": self._shift_start(),
        }
        self.blend = nn.Parameter(self._shift_start())
        self.shifts = nn.ModuleDict(
            {name: LowRank(width, SHIFT_RANK, offset=start) for name, start in starts.items()}
        )
        self.gate = nn.Linear(width, width, bias=False)
        self.decay = LowRank(width, DECAY_RANK, offset=-6 + 5 * place ** (0.7 + 1.3 * self.depth))
        zigzag = 0.1 * ((torch.arange(width) + 1) % 3 - 1)
        self.bonus = nn.Parameter((self.depth * (1 - place) + zigzag).view(n_head, head_dim))

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        change = change_since_last(x, cache)
        blended = x + change * self.blend
        inputs = {name: x + change * shift(blended) for name, shift in self.shifts.items()}
        layers = {"receptance": self.receptance, "key": self.key, "value": self.value}
        r, k, v = (self._split(layer(inputs[name])) for name, layer in layers.items())
        rate = self._split(self.decay(inputs["decay"]))
        with full_precision(x):
            # exp(-exp(10)) is 0 in every precision; beyond, the gradient would be infinity * 0.
            log_decay = -rate.clamp_max(10.0).exp()
            mixed = decayed_attention(r, k, v, log_decay, cache, chunk, self.bonus.to(r.dtype))
            mixed = self._normalised(mixed).to(x.dtype)
        return self.project(mixed * functional.silu(self.gate(inputs["gate"])))


MIXER = RWKV6
