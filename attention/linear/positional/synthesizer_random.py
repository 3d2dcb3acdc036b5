"""The random Synthesizer (Tay et al. 2020, arXiv:2005.00743)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention.linear._bounded import triangle_rows, triangle_size
from attention.linear.positional._synthesizer import Synthesizer


class SynthesizerRandom(Synthesizer):
    """Y = softmax(R) G(X), with R a learned matrix of scores for each head (Sect. 3.2).

    R knows positions alone: all sequences are averaged by the same weights. It starts as in the
    authors' code, uniform as Glorot's of a table of [length, heads, length].

    Arguments:
        max_length: Rows of R.
    """

    name = "synthesizer_random"
    source = "Tay et al. 2020 (arXiv:2005.00743), Sect. 3.2: trainable Random Synthesizer"
    about = "Softmax attention whose scores are learned numbers, the same for all sequences."
    kept = "H D (L - 1)"
    arguments: ClassVar = {"max_length": 1024}
    deviations = "of R what lies below the diagonal alone, which is what a causal model reads"
    undecayed = ("scores",)

    def __init__(self, n_head: int, head_dim: int, **args: Any) -> None:
        super().__init__(n_head, head_dim, **args)
        length = self.args["max_length"]
        bound = math.sqrt(6 / (length * (length + n_head)))
        start = torch.empty(n_head, triangle_size(length)).uniform_(-bound, bound)
        self.scores = nn.Parameter(start)

    def _scores(self, x: Tensor, first: int) -> Tensor:
        scores = self.scores.to(torch.promote_types(x.dtype, torch.float32))
        return triangle_rows(scores, first, x.shape[1], -math.inf)[None]


MIXER = SynthesizerRandom
