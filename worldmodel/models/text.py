"""Language models: a GPT on token ids, and one that has its tokeniser."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, arange, nn
from torch.nn import functional

from attention.scalars import check_size
from worldmodel.models.base import GPTModel
from worldmodel.text.tokenizers import load_tokenizer

IGNORE = -100
"""Target of the positions at which nothing is predicted."""


class TokenModel(GPTModel):
    """A GPT that predicts a token at every target position.

    Args:
        vocab_size: Number of token ids.
        n_positions: Learned absolute positions, which then bound the length (GPT-2); None for
            none. The rotary positions of the attention are left out with
            ``attention_args={"rope_base": None}``.
        tied: The embedding is also the head, as in GPT-2. The problems' models have a head of
            their own: tied, a small one had not learned recall in three times the steps that it
            took with one (one seed).
        **kwargs: As for :class:`worldmodel.models.base.GPTModel`.
    """

    def __init__(
        self, vocab_size: int, n_positions: int | None = None, tied: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        for label, size in (("vocab_size", vocab_size), ("n_positions", n_positions)):
            if size is not None:
                check_size(label, size)
        self.embedding = nn.Embedding(vocab_size, self.gpt.width)
        # Small as a head, so that training starts from a uniform guess; `embedded` scales it up.
        std = 0.02 if tied else 1 / math.sqrt(self.gpt.width)
        nn.init.normal_(self.embedding.weight, std=std)
        self.head = None
        if not tied:
            self.head = nn.Linear(self.gpt.width, vocab_size, bias=False)
            # Not smaller: with 0.02, softmax had not learned recall in 500 steps where this had.
            nn.init.normal_(self.head.weight, std=std)
        self.positions = None
        if n_positions is not None:
            self.positions = nn.Embedding(n_positions, self.gpt.width)
            nn.init.normal_(self.positions.weight, std=0.02)

    def hidden(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the backbone's final hidden states, [B, T, width]."""
        return self.gpt(self.embedded(batch["tokens"]))

    def embedded(self, tokens: Tensor) -> Tensor:
        """Return the inputs [B, T, width] of the first block for tokens [B, T]."""
        # Vaswani et al. (2017), Sect. 3.4: one matrix for both, times sqrt(width) as embedding.
        x = self.embedding(tokens)
        if self.positions is not None:
            length, most = tokens.shape[1], self.positions.num_embeddings
            if length > most:
                raise ValueError(f"{length} tokens, but the model has {most} learned positions")
            x = x + self.positions(arange(length, device=tokens.device))
        return x * math.sqrt(self.gpt.width)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the logits at each position.

        Args:
            batch: ``tokens``, int64 [B, T].

        Returns:
            [B, T, vocab_size].
        """
        return self.logits(self.hidden(batch))

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits [..., vocab_size] of final hidden states [..., width]."""
        weight = self.embedding.weight if self.head is None else self.head.weight
        return functional.linear(hidden, weight)

    def answers(self, batch: dict[str, Tensor], positions: Tensor) -> Tensor:
        """Return the logits at some positions alone: a vocabulary can be large.

        Args:
            batch: ``tokens``, int64 [B, T].
            positions: Mask, [B, T].

        Returns:
            [n, vocab_size].
        """
        return self.logits(self.hidden(batch)[positions])

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        """Log ``val_loss``, and ``val_accuracy`` of problems that name their targets."""
        if "targets" not in batch:
            super().validation_step(batch, batch_idx)
            return
        logits, targets = self._logits_and_targets(batch)
        size = len(batch["targets"])
        loss = functional.cross_entropy(logits, targets)
        self.log_mean("val_loss", loss, size, prog_bar=True)
        right = (logits.argmax(dim=-1) == targets).float().mean()
        self.log_mean("val_accuracy", right, size, prog_bar=True)

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the mean negative log-likelihood of the targets, in nats."""
        return functional.cross_entropy(*self._logits_and_targets(batch))

    def _logits_and_targets(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the logits [n, V] and the targets [n] of a batch."""
        tokens, targets = batch["tokens"], batch.get("targets")
        if targets is None:  # a text: each token is predicted from those before it
            return self({"tokens": tokens[:, :-1]}).flatten(0, 1), tokens[:, 1:].flatten()
        positions = targets != IGNORE
        return self.answers(batch, positions), targets[positions]


class TextModel(TokenModel):
    """Predict the next token of a text.

    Args:
        tokenizer: ``bytes``, ``gpt2``, the path of a ``tokenizer.json``, or its content.
            Checkpoints hold the content, so a checkpoint alone can tokenise a sentence.
        **kwargs: As for :class:`worldmodel.models.text.TokenModel`, less ``vocab_size``.
    """

    same = (*TokenModel.same, "tokenizer")

    def __init__(self, tokenizer: str = "bytes", **kwargs: Any) -> None:
        loaded = load_tokenizer(tokenizer)
        super().__init__(loaded.vocab_size, **kwargs)
        self.tokenizer = loaded
        self.hparams["tokenizer"] = loaded.definition
        self.hparams.pop("vocab_size", None)  # the tokeniser says it
