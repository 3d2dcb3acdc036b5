"""A linear map that keeps its own start values in a model."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Projection(nn.Module):
    """x W^T, [..., out], of x [..., in].

    A GPT starts every ``nn.Linear`` anew; this one stays as the mixer starts it, at first uniform
    in +-1 / sqrt(in). Muon leaves it to AdamW, by which such mixers were trained.

    Args:
        inputs: Channels of x.
        outputs: Channels of the result.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., in] to [..., out]."""
        return functional.linear(x, self.weight)
