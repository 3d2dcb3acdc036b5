"""Gated linear attention (Yang et al. 2023, arXiv:2312.06635)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

from attention.linear import fla
from attention.linear._decay import decayed_attention
from attention.linear._norm import normalised
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision

RANK, TEMPERATURE = 16, 16
"""Rank and temperature of the forget gate, as published (Sect. 4.4)."""


class GatedLinearAttention(Mixer):
    """S_t = (alpha_t^T 1) * S_{t-1} + k_t^T v_t, o_t = q_t S_t (Sect. 4.1).

    alpha_t = sigmoid(x_t W1 W2 + b)^(1 / 16) is one decay per key channel, and the layer returns
    (swish(x W_r + b_r) * LN(o)) W_O, normalised head by head (Sect. 4.4). Keys have half the
    channels of values, as published, which makes 4 width^2 weights, as many as softmax attention
    has. Positions come from the decay alone.
    """

    name = "gla"
    source = "Yang et al. 2023 (arXiv:2312.06635), Sects. 4.1 and 4.4"
    about = "Linear attention in which every key channel forgets at a rate the input chooses."
    kept = "H D^2 / 2"
    deviations = (
        "LayerNorm and a biased output gate as in the paper; the code has RMSNorm and no "
        "bias. q is not divided by sqrt(d): the norm undoes it but for its epsilon. Any "
        "number of heads; there 4."
    )
    kernels: ClassVar = {"fla": fla.refusal}

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        if head_dim % 2:
            raise ValueError(f"gla has keys of head_dim / 2 channels: {head_dim} is odd")
        width = self.width
        self.query, self.key = (nn.Linear(width, width // 2, bias=False) for _ in range(2))
        self.value = nn.Linear(width, width, bias=False)
        self.forget = nn.Sequential(nn.Linear(width, RANK, bias=False), nn.Linear(RANK, width // 2))
        self.gate = nn.Linear(width, width)
        self.norm = nn.LayerNorm(head_dim)
        self.project = nn.Linear(width, width, bias=False)

    @classmethod
    def channels(cls, head_dim: int, args: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many channels keys and values have in a head."""
        return head_dim // 2, head_dim

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        q, k, v, forget = (
            self._split(layer(x)) for layer in (self.query, self.key, self.value, self.forget)
        )
        with full_precision(x):
            log_decay = functional.logsigmoid(forget) / TEMPERATURE
            mixed = normalised(self.norm, decayed_attention(q, k, v, log_decay, cache, chunk))
        return self.project(functional.silu(self.gate(x)) * self._merge(mixed, x))


MIXER = GatedLinearAttention
