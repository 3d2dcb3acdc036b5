"""The autoencoder of MAD's compression problem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attention.positions import sinusoidal
from benchmarks.learners import Learner
from benchmarks.recall.data import ProblemData
from worldmodel.models.base import GPTModel
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.restored import restored
from worldmodel.models.text import TokenModel


class CompressionModel(TokenModel):
    """Give back every token of a row from the state at its last position.

    Poli et al. (2024), Sect. 3.1; mad/model/auto_encoder.py of athms/mad-lab at 0f49a45: the
    last hidden state plus a sine-cosine code of the position goes through an MLP of two hidden
    layers.
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


def compression_model(data: Mapping[str, Any], **model: Any) -> GPTModel:
    """Return an autoencoder with the vocabulary of the problem."""
    return CompressionModel(ProblemData(**data).problem.vocab_size, **model)


def load_compression(path: Path) -> GPTModel:
    """Return the autoencoder of a checkpoint."""
    return restored(CompressionModel, read_checkpoint(path), path)


LEARNER = Learner(compression_model, ProblemData, load_compression)
