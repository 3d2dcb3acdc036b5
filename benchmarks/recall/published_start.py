"""Recall models that start as zoology's: small weights everywhere, and the embedding as head.

HazyResearch/zoology d88d6f5, zoology/model.py: all matrices and embeddings are normal with a
deviation of 0.02, projections to the residual stream by the root of twice the number of blocks
less; biases are 0; the head is the embedding, which is not scaled up. Its dropout is left out.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.recall.data import learner
from worldmodel.models.text import TokenModel

DEVIATION = 0.02


class PublishedStart(TokenModel):
    """A model of tokens with zoology's initial sizes and tied head."""

    def __init__(self, vocab_size: int, **kwargs: Any) -> None:
        super().__init__(vocab_size, **kwargs)
        depth = math.sqrt(2 * len(self.gpt.blocks))
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                residual = name.endswith(("project", "mlp.2", "mlp.down"))
                nn.init.normal_(module.weight, std=DEVIATION / depth if residual else DEVIATION)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def embedded(self, tokens: Tensor) -> Tensor:
        """Return the inputs [B, T, width] of the first block for tokens [B, T]."""
        x: Tensor = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        return x


LEARNER = learner(PublishedStart)
