"""RWKV-7, "Goose" (Peng et al. 2025, arXiv:2503.14456)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear import fla
from attention.linear._delta import vector_rule
from attention.linear._norm import smooth_unit
from attention.linear._rwkv import RWKV, LowRank, change_since_last, channels
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision


class RWKV7(RWKV):
    """S_t = S_{t-1} (diag(w_t) - kappa_t^T (a_t * kappa_t)) + v_t^T k_t, o_t = S_t r_t.

    A delta rule in which the key that is removed, kappa = unit(k * xi), is not the one that is
    added, k (1 + (a - 1) alpha), and in which the rate a and the decay
    w = exp(-e^(-1/2) sigmoid(lora(x))) are vectors. Each projection sees its own fixed
    interpolation of x_t and x_{t-1}. The layer returns
    ((GroupNorm(o) + (r . (rho * k)) v) * g) W_o with g = sigmoid(x A) B.

    The paper's layers after the first also mix the first layer's values into theirs; a mixer sees
    its own layer alone, so each is what the first one is.
    """

    name = "rwkv7"
    source = "Peng et al. 2025 (arXiv:2503.14456), time mixing"
    about = "A delta rule with decays and learning rates per channel, and token shift."
    kept = "H (D^2 + D)"
    deviations = (
        "Projections start as the model's other linear layers do (there r, k and v orthogonal, "
        "k by 0.1, and the output 0), B of the low ranks uniform (there orthogonal). The removal "
        "key is divided by sqrt(x.x + 1e-6), there by its length. No values of the first layer."
    )
    undecayed = ("bonus",)
    kernels: ClassVar = {"fla": fla.vector_refusal}

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        width, place = self.width, channels(self.width)
        self.shifts = nn.ParameterDict(
            {
                "receptance": self._shift_start(0.2),
                "decay": self._shift_start(0.9),
                "key": self._shift_start(0.7),
                "value": self._shift_start(0.7),
                "rate": self._shift_start(0.9),
                "gate": self._shift_start(0.2),
            }
        )
        wave = torch.linspace(-1, 1, head_dim).repeat(n_head)
        wave = wave * wave.abs()
        slow = -6 + 6 * place ** (1 + self.depth**0.3)
        self.decay = LowRank(width, _rank(2.5, width), offset=slow + 0.5 + 2.5 * wave)
        self.rate = LowRank(
            width,
            _rank(2.5, width),
            inside=nn.Identity(),
            offset=-0.19 + 0.3 * wave + 0.4 * (place - 0.5),
        )
        self.gate = LowRank(width, _rank(5, width), inside=torch.sigmoid)
        self.removal = nn.Parameter(0.71 - 0.1 * (place - 0.5))
        self.replacement = nn.Parameter(torch.full((width,), 1.02))
        self.bonus = nn.Parameter(torch.full((n_head, head_dim), -0.04))

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        change = change_since_last(x, cache)
        inputs = {name: x + change * shift for name, shift in self.shifts.items()}
        key = self.key(inputs["key"])
        r, k, removed, v, decay, rate = (
            self._split(heads)
            for heads in (
                self.receptance(inputs["receptance"]),
                key,
                key * self.removal,
                self.value(inputs["value"]),
                self.decay(inputs["decay"]),
                self.rate(inputs["rate"]),
            )
        )
        with full_precision(x):
            log_decay = -math.exp(-0.5) * decay.sigmoid()
            removed, rate = smooth_unit(removed), rate.sigmoid()
            k = k * (1 + (rate - 1) * self.replacement.view(self.n_head, 1, -1))
            given = v.to(key.dtype), log_decay, removed, -rate * removed
            mixed = vector_rule(r, k, *given, cache, chunk)
            present = (r * k * self.bonus[:, None]).sum(-1, keepdim=True) * v
            mixed = self._normalised(mixed) + self._merge(present, like=present)
        return self.project((mixed * self.gate(inputs["gate"])).to(x.dtype))


def _rank(factor: float, width: int) -> int:
    """Return the rank of a low-rank function, a multiple of 32, as in the authors' code."""
    return max(32, 32 * round(factor * math.sqrt(width) / 32))


MIXER = RWKV7
