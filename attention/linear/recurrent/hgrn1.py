"""HGRN, the first (Qin et al. 2023, arXiv:2311.04823)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear._bound import BoundedBelow
from attention.linear._norm import normalised
from attention.linear._scan import scanned
from attention.linear.mixer import RecurrentState
from attention.parts.precision import full_precision


class HGRN1(BoundedBelow):
    """h_t = f_t exp(i theta) h_{t-1} + (1 - f_t) c_t, complex (Sect. 3).

    f_t = lower + (1 - lower) sigmoid(x_t W_f + b), c_t = SiLU(x_t W_c + b) with its real and
    imaginary parts side by side, and theta, a learned turn per channel, starts as RoPE's. Real and
    imaginary parts of h pass a LayerNorm, a gate SiLU(x_t W_g + b) and the last projection.

    Arguments:
        lower_bound: Lower bound, see hgrn2.
        causal: False for sums in both directions, with a turn for each (BiHgru1d of the authors'
            hgru-pytorch).
    """

    name = "hgrn1"
    source = "Qin et al. 2023 (arXiv:2311.04823), Sect. 3"
    about = "A gated linear recurrence of complex numbers that turn; forgets less in later layers."
    kept = "2 H D"
    arguments: ClassVar = {"lower_bound": None, "causal": True}
    deviations = (
        "the lower bounds of forget gates are fixed at layer / n_layer, where the paper's learned "
        "ones start; the token mixer alone, beside the GPT's MLP in place of the paper's GLU."
    )

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        width = self.width
        self.inputs, self.forget, self.gate = (
            nn.Linear(width, size) for size in (2 * width, width, 2 * width)
        )
        turns = 10_000.0 ** (-2 * torch.arange(width) / width)
        self.turn = nn.Parameter(turns)
        if not self.causal:
            self.turn_back = nn.Parameter(turns.clone())
        self.norm = nn.LayerNorm(2 * width)
        self.project = nn.Linear(2 * width, width)

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        kind = torch.promote_types(x.dtype, torch.float32)
        inputs, forget = functional.silu(self.inputs(x)).to(kind), self.forget(x).to(kind)
        with full_precision(x):
            opened = (1 - self.lower_bound) * torch.sigmoid(-forget)  # 1 - f, with all its digits
            kept = self.lower_bound + (1 - self.lower_bound) * torch.sigmoid(forget)
            real, imaginary = inputs.chunk(2, dim=-1)
            added = torch.complex(opened * real, opened * imaginary)
            h = scanned(_turned(kept, self.turn), added, cache, chunk)
            if not self.causal:
                back = _turned(kept, self.turn_back).flip(1), added.flip(1)
                h = h + scanned(*back, RecurrentState(), chunk).flip(1)
            mixed = normalised(self.norm, torch.cat([h.real, h.imag], dim=-1))
        return self.project(mixed.to(x.dtype) * functional.silu(self.gate(x)))


def _turned(kept: Tensor, turn: Tensor) -> Tensor:
    """Return the complex factors of sizes [B, L, C] and angles [C]."""
    return torch.polar(kept, turn.to(kept.dtype).expand_as(kept))


MIXER = HGRN1
