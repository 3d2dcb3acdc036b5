"""Folders of token files in the format of llm.c and modded-nanogpt, and the record of each.

256 int32 say magic number, version and number of tokens (karpathy/llm.c, dev/data); the tokens
follow as uint16 (GPT-2 and every vocabulary that fits) or uint32 (Llama 3). All numbers are
little-endian. ``shards.json`` records the origin of a folder's files, with a checksum of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from orbits.runs import artefact
from orbits.runs.manifest import manifest
from worldmodel.text.tokenizers import Tokenizer, identity

RECORD, SCHEMA = "shards.json", 1
HEADER = 256
"""Length of the header in int32."""
MOST_TOKENS = 2**31 - 1
"""Largest number of tokens that a header can hold."""


@dataclass(frozen=True)
class Format:
    """A file format: magic number, version and dtype of the tokens."""

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

    Returns:
        ``n_tokens``, ``bytes`` and ``sha256`` of the file.
    """
    if len(tokens) > MOST_TOKENS:
        raise ValueError(f"{path}: {len(tokens)} tokens, but a file holds at most {MOST_TOKENS}")
    check_tokens(path, tokens, vocab_size)
    kind = format_of(vocab_size)
    header = np.zeros(HEADER, "<i4")
    header[:3] = kind.magic, kind.version, len(tokens)
    digest, parts = hashlib.sha256(), (header, tokens.astype(kind.dtype, copy=False))
    with artefact.replacing(path) as file:
        for part in parts:
            file.write(part.data)
            digest.update(part.data)
    size = sum(part.nbytes for part in parts)
    return {"n_tokens": len(tokens), "bytes": size, "sha256": digest.hexdigest()}


def read_shard(path: str | Path) -> npt.NDArray:
    """Map the tokens of a file into memory, [N], uint16 or uint32."""
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
    """Refuse tokens of another vocabulary."""
    for token in (int(tokens.min(initial=0)), int(tokens.max(initial=0))):
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"{path}: token {token} is beyond the vocabulary of {vocab_size}; "
                "name the tokenizer that it was made with"
            )


def new_record(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a folder without files.

    Its ``config`` says what determines the files, ``shards`` lists them (file, split, n_tokens,
    bytes, sha256), and ``position`` says where their source stood after the last of them.
    """
    return {
        "schema": SCHEMA,
        "config": dict(config),
        "shards": [],
        "position": None,
        "complete": False,
        "manifest": manifest(config, seed=None),
    }


def load_record(folder: str | Path) -> dict[str, Any]:
    """Return the record of a folder, finished or not."""
    path = Path(folder) / RECORD
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {RECORD}; make shards with python -m worldmodel shards, or record "
            f"those made elsewhere: python -m worldmodel shards --adopt {folder}"
        )
    record = artefact.load_record(path)
    if record.get("schema") != SCHEMA:
        raise ValueError(f"{path}: format {record.get('schema')}, this code reads {SCHEMA}")
    for shard in record["shards"]:
        if artefact.below(folder, shard["file"]).parent != Path(folder):  # a link, perhaps
            raise artefact.CorruptArtefact(
                f"{path}: {shard['file']!r} is no plain file name; make the shards again"
            )
    return record


def read_folder(folder: str | Path) -> dict[str, Any]:
    """Return the record of a finished folder whose files have the recorded sizes.

    The files are not hashed, which would take seconds per gigabyte; :func:`verify` does that.
    """
    record = load_record(folder)
    if not record["complete"]:
        raise ValueError(f"{folder} is unfinished; run the command that makes it again")
    for shard in record["shards"]:
        path = Path(folder) / shard["file"]
        size = path.stat().st_size if path.is_file() else None
        if size != shard["bytes"]:
            state = "missing" if size is None else f"{size} bytes"
            raise artefact.CorruptArtefact(
                f"{path}: {state}, but {shard['bytes']} bytes were written; make it again"
            )
    return record


def folder_hash(record: Mapping[str, Any]) -> str:
    """Return one sha256 for a folder: of its files' hex digests in order."""
    digests = "".join(shard["sha256"] for shard in record["shards"])
    return hashlib.sha256(digests.encode()).hexdigest()


def verify(folder: str | Path, progress: bool = True) -> list[str]:
    """Hash every file of a folder again, and look for tokens beyond the vocabulary.

    Returns:
        One line for each file that is missing or damaged; none if the folder is whole.
    """
    record, problems = load_record(folder), []
    for shard in tqdm(record["shards"], "files", disable=not progress):
        path = Path(folder) / shard["file"]
        try:
            check_tokens(path, read_shard(path), record["config"]["vocab_size"])
            if artefact.sha256(path) != shard["sha256"]:
                problems.append(f"{path}: sha256 mismatch; it was edited or damaged")
        except FileNotFoundError:
            problems.append(f"{path}: missing")
        except ValueError as error:
            problems.append(str(error))
    return problems


def adopt(folder: str | Path, tokenizer: Tokenizer, progress: bool = True) -> dict[str, Any]:
    """Record files of tokens that were made elsewhere, and return the record.

    Files with ``val`` in their name are for validation, as those of llm.c and modded-nanogpt are.
    """
    folder = Path(folder)
    if (folder / RECORD).exists():
        raise FileExistsError(f"{folder} has a {RECORD} already")
    paths = sorted(folder.glob("*.bin"), key=lambda path: ("val" not in path.name, path.name))
    if len({"val" in path.name for path in paths}) < 2:
        raise FileNotFoundError(
            f"{folder} needs .bin files for training and one with val in its name, "
            f"it has {', '.join(path.name for path in paths) or 'none'}"
        )
    vocab_size = tokenizer.vocab_size
    name = folder.resolve().name
    record = new_record(
        {"corpus": name, "tokenizer": identity(tokenizer), "vocab_size": vocab_size}
    )
    for path in tqdm(paths, "files", disable=not progress):
        tokens = read_shard(path)
        if tokens.dtype != format_of(vocab_size).dtype:
            size = "more" if tokens.dtype == LARGE.dtype else "less"
            raise ValueError(
                f"{path} has tokens of {tokens.dtype.itemsize} bytes, for a vocabulary of {size} "
                f"than {2**16}; the tokenizer has {vocab_size}: name the one it was made with"
            )
        check_tokens(path, tokens, vocab_size)
        record["shards"].append(
            {
                "file": path.name,
                "split": "val" if "val" in path.name else "train",
                "n_tokens": len(tokens),
                "bytes": path.stat().st_size,
                "sha256": artefact.sha256(path),
            }
        )
    record["complete"] = True
    return artefact.create_record(folder / RECORD, record)
