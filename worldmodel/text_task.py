"""Next-token prediction of text."""

from __future__ import annotations

from typing import Any

from worldmodel.token_task import TokenTask
from worldmodel.tokenizer import load_tokenizer


class TextTask(TokenTask):
    """Predict the next token of a text.

    Args:
        tokenizer: ``bytes``, ``gpt2``, the path of a ``tokenizer.json``, or its content.
            Checkpoints hold the content, so a checkpoint alone can tokenise a sentence.
        **kwargs: As for :class:`worldmodel.token_task.TokenTask`, less ``vocab_size``.
    """

    same = (*TokenTask.same, "tokenizer")

    def __init__(self, tokenizer: str = "bytes", **kwargs: Any) -> None:
        loaded = load_tokenizer(tokenizer)
        super().__init__(loaded.vocab_size, **kwargs)
        self.tokenizer = loaded
        self.hparams["tokenizer"] = loaded.definition
        self.hparams.pop("vocab_size", None)  # the tokeniser says it
