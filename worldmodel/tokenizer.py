"""Text as token ids: UTF-8 bytes, GPT-2's tokens, or what a ``tokenizer.json`` says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]

END_OF_TEXT = ("<|endoftext|>", "<|end_of_text|>", "</s>")
"""Names of the end-of-text token in the tokenisers of GPT-2, Llama 3 and Llama 2."""


class Tokenizer(Protocol):
    """Map text to token ids and back.

    Attributes:
        definition: ``bytes``, ``gpt2`` or the content of a ``tokenizer.json``: all that
            :func:`load_tokenizer` needs to make the same tokeniser again.
        vocab_size: Number of token ids.
        end_of_text: The id in front of every document of a corpus.
    """

    definition: str
    vocab_size: int
    end_of_text: int

    def encode(self, text: str) -> Tokens:
        """Return the ids of a text, [T].

        No special token is among them: where the text spells one, like ``<|endoftext|>``, it is
        text like any other, so that a document cannot end itself.
        """

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some ids; bytes that are not UTF-8 become U+FFFD."""


class ByteTokenizer:
    """The 256 bytes of UTF-8, and end-of-text as number 256."""

    definition = "bytes"
    vocab_size = 257
    end_of_text = 256

    def encode(self, text: str) -> Tokens:
        """Return the bytes of a text, [T]."""
        return np.frombuffer(text.encode(), np.uint8).astype(np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some bytes; end-of-text tokens are left out."""
        return bytes(i for i in ids if i != self.end_of_text).decode(errors="replace")


class JsonTokenizer:
    """A tokeniser of the Hugging Face library ``tokenizers``.

    Args:
        definition: The content of a ``tokenizer.json``.

    Raises:
        ValueError: The library is missing, the content is no tokeniser, or it has no end-of-text
            token under one of the names in ``END_OF_TEXT``.
    """

    def __init__(self, definition: str) -> None:
        try:
            import tokenizers
        except ModuleNotFoundError:
            raise ValueError(
                "a tokenizer.json needs the package tokenizers: pip install 'orrery[eval]'"
            ) from None
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(definition)
        except Exception as error:  # the library raises bare Exceptions
            raise ValueError(f"not the content of a tokenizer.json: {error}") from None
        vocabulary = self._tokenizer.get_vocab()
        ends = [vocabulary[name] for name in END_OF_TEXT if name in vocabulary]
        if not ends:
            raise ValueError(
                f"the tokenizer has no end-of-text token; add one of {', '.join(END_OF_TEXT)}"
            )
        self.definition = definition
        self._tokenizer.encode_special_tokens = True  # as text; it is not part of the definition
        # Published files often carry both, for batches: a corpus would lose or gain text.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Ids may have gaps, so their number is not enough.
        self.vocab_size = max(vocabulary.values()) + 1
        self.end_of_text = ends[0]

    def encode(self, text: str) -> Tokens:
        """Return the ids of a whole text, without special tokens or padding, [T]."""
        return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).ids, np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some ids; special tokens are left out."""
        return self._tokenizer.decode([int(i) for i in ids])


def load_tokenizer(source: str) -> Tokenizer:
    """Return a tokeniser.

    Args:
        source: ``bytes``, ``gpt2``, the path of a ``tokenizer.json``, or its content.

    Raises:
        ValueError: There is no such file, or it cannot serve (see :class:`JsonTokenizer` and
            :class:`worldmodel.gpt2.Gpt2Tokenizer`).
    """
    if source == ByteTokenizer.definition:
        return ByteTokenizer()
    if source == "gpt2":
        from worldmodel.gpt2 import Gpt2Tokenizer

        return Gpt2Tokenizer()
    if source.startswith("{"):
        return JsonTokenizer(source)
    path = Path(source)
    if not path.is_file():
        raise ValueError(
            f"tokenizer {source!r} is no file; choose bytes, gpt2 or the path of a tokenizer.json"
        )
    return JsonTokenizer(path.read_text(encoding="utf-8"))


def identity(tokenizer: Tokenizer) -> str:
    """Return a short name: ``bytes``, ``gpt2`` or the sha256 of a ``tokenizer.json``."""
    definition = tokenizer.definition
    if not definition.startswith("{"):
        return definition
    return f"sha256:{hashlib.sha256(definition.encode()).hexdigest()}"
