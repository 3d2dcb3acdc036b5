"""Files of tokens in the format of llm.c and modded-nanogpt (karpathy/llm.c, dev/data).

256 int32 say magic number, version and number of tokens; the tokens follow as uint16 (GPT-2 and
every vocabulary that fits) or uint32 (Llama 3). All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import artefacts

HEADER = 256
"""Length of the header in int32."""
MOST_TOKENS = 2**31 - 1
"""What its number of tokens can say."""


@dataclass(frozen=True)
class Format:
    """One of the two kinds of files."""

    magic: int
    version: int
    dtype: str


SMALL = Format(20240520, 1, "<u2")
LARGE = Format(20240801, 7, "<u4")


def format_of(vocab_size: int) -> Format:
    """Return the format that holds the tokens of a vocabulary."""
    return SMALL if vocab_size <= 2**16 else LARGE


def write_shard(path: str | Path, tokens: npt.NDArray, vocab_size: int) -> dict[str, Any]:
    """Write a file of tokens in one step.

    Args:
        path: The file.
        tokens: Token ids, [N].
        vocab_size: Their vocabulary, which decides the format.

    Returns:
        ``n_tokens``, ``bytes`` and ``sha256`` of the file.

    Raises:
        ValueError: A token is not of the vocabulary, or they are more than ``MOST_TOKENS``.
        OSError: The disk is full or the folder cannot be written.
    """
    if len(tokens) > MOST_TOKENS:
        raise ValueError(f"{path}: {len(tokens)} tokens, but a file holds at most {MOST_TOKENS}")
    check_tokens(path, tokens, vocab_size)
    kind = format_of(vocab_size)
    header = np.zeros(HEADER, "<i4")
    header[:3] = kind.magic, kind.version, len(tokens)
    digest, parts = hashlib.sha256(), (header, tokens.astype(kind.dtype, copy=False))
    with artefacts.replacing(path) as file:
        for part in parts:
            file.write(part.data)
            digest.update(part.data)
    size = sum(part.nbytes for part in parts)
    return {"n_tokens": len(tokens), "bytes": size, "sha256": digest.hexdigest()}


def read_shard(path: str | Path) -> npt.NDArray:
    """Map the tokens of a file into memory, [N], uint16 or uint32.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no file of tokens, of another version, or truncated.
    """
    path = Path(path)
    header = np.fromfile(path, "<i4", HEADER)
    kind = next((k for k in (SMALL, LARGE) if len(header) == HEADER and header[0] == k.magic), None)
    if kind is None:
        raise ValueError(
            f"{path}: no file of tokens (its magic number is not {SMALL.magic} or {LARGE.magic})"
        )
    if header[1] != kind.version:
        raise ValueError(f"{path}: version {header[1]}, this code reads {kind.version}")
    n_tokens = int(header[2])
    expected = 4 * HEADER + n_tokens * np.dtype(kind.dtype).itemsize
    if n_tokens < 1 or path.stat().st_size != expected:
        raise ValueError(
            f"{path}: {path.stat().st_size} bytes, but {n_tokens} tokens take {expected}; it is "
            "truncated or damaged, make it again"
        )
    return np.memmap(path, kind.dtype, "r", 4 * HEADER, (n_tokens,))


def check_tokens(path: str | Path, tokens: npt.NDArray, vocab_size: int) -> None:
    """Refuse tokens of another vocabulary.

    Raises:
        ValueError: A token is not in [0, ``vocab_size``).
    """
    for token in (int(tokens.min(initial=0)), int(tokens.max(initial=0))):
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"{path}: token {token} is beyond the vocabulary of {vocab_size}; "
                "name the tokenizer that it was made with"
            )
