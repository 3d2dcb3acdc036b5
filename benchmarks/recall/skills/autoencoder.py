"""The autoencoder of MAD's compression problem."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from attention.positions import sinusoidal
from benchmarks.recall.data import learner
from worldmodel.models.text import TokenModel


class CompressionModel(TokenModel):
    """Give back every token of a row from the state at its last position.

    Poli et al. (2024), Sect. 3.1; mad/model/auto_encoder.py of athms/mad-lab at 0f49a45: the
    last hidden state plus a sine-cosine code of the position goes through an MLP of two hidden
    layers.

    Args:
        vocab_size: Number of token ids.
        **kwargs: As for :class:`worldmodel.models.text.TokenModel`.
    """

    def __init__(self, vocab_size: int, **kwargs: Any) -> None:
        super().__init__(vocab_size, **kwargs)
        width = self.gpt.width
        self.decoder = nn.Sequential(
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, vocab_size),
        )

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return logits of every token of tokens [B, T], [B, T, vocab_size]."""
        hidden = self.hidden(batch)
        codes = sinusoidal(hidden.shape[1], hidden.shape[2]).to(hidden)
        return self.decoder(hidden[:, -1:] + codes)

    def answers(self, batch: dict[str, Tensor], asked: Tensor) -> Tensor:
        """Return logits of the asked tokens, [n, vocab_size]."""
        return self(batch)[asked]


LEARNER = learner(CompressionModel)
