"""The dense Synthesizer (Tay et al. 2020, arXiv:2005.00743)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.linear.positional._synthesizer import Synthesizer
from attention.parts.precision import full_precision


class SynthesizerDense(Synthesizer):
    """Y = softmax(F(X)) G(X), F(x_t) = W_2 relu(W_1 x_t + b_1) + b_2, a score for each place.

    A token says to which places it attends and sees no key (Sect. 3.1). W_2 and b_2
    belong to a head and have a row for each place.

    Arguments:
        max_length: Rows of W_2.
    """

    name = "synthesizer_dense"
    source = "Tay et al. 2020 (arXiv:2005.00743), Sect. 3.1: Dense Synthesizer"
    about = "Softmax attention whose scores a token gives to places, without looking at keys."
    kept = "H D (L - 1)"
    arguments: ClassVar = {"max_length": 1024}
    deviations = (
        "the paper's offsets and a W_2 for each head; its code has none, and heads share it"
    )
    undecayed = ("offsets",)

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        length = self.args["max_length"]
        self.hidden = nn.Linear(self.width, self.width)
        start = torch.randn(n_head, length, head_dim) / math.sqrt(head_dim)
        self.places = nn.Parameter(start)
        self.offsets = nn.Parameter(torch.zeros(n_head, length))

    def _scores(self, x: Tensor, first: int) -> Tensor:
        hidden, last = self._split(functional.relu(self.hidden(x))), first + x.shape[1]
        with full_precision(x):
            places, offsets = (p[:, :last].to(hidden.dtype) for p in (self.places, self.offsets))
            scores = hidden @ places.mT + offsets[:, None]
            later = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(first + 1)
            return scores.masked_fill(later, -math.inf)


MIXER = SynthesizerDense
