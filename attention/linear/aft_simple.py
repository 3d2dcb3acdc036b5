"""The attention-free transformer in its simple form (Zhai et al. 2021, arXiv:2105.14103)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attention.linear._average import averages
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.precision import full_precision


class AFTSimple(Mixer):
    """y_t = sigmoid(q_t) sum_{i <= t} exp(k_i) v_i / sum_{i <= t} exp(k_i), channel by channel.

    AFT-full with its position biases w left out (Sect. 3.2, AFT-simple), in causal form: biases of
    every pair of positions would fix the length and make the time quadratic. Heads are of no
    account. It knows no order but through the model's own positions.
    """

    name = "aft_simple"
    source = "Zhai et al. 2021 (arXiv:2105.14103), Sect. 3.2"
    about = "A running average of values by channel, weighted by keys and gated by queries."
    kept = "2 H D"
    deviations = "an output projection, as the softmax attention that it replaces has one"

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        self.query, self.key, self.value, self.project = (
            nn.Linear(self.width, self.width, bias=False) for _ in range(4)
        )

    def _mix(self, x: Tensor, cache: RecurrentState, chunk: int | None) -> Tensor:
        dtype = torch.promote_types(x.dtype, torch.float32)
        q, k, v = (layer(x).to(dtype) for layer in (self.query, self.key, self.value))
        with full_precision(x):
            mixed, _, _ = averages(k, v, k.new_zeros(self.width), cache, chunk)
        return self.project((q.sigmoid() * mixed).to(x.dtype))


MIXER = AFTSimple
