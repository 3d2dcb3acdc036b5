"""A folder of token files and the record that says what they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from orbits import artefacts
from orbits.manifest import manifest
from worldmodel.shard_files import LARGE, check_tokens, format_of, read_shard
from worldmodel.tokenizer import Tokenizer, identity

RECORD, SCHEMA = "shards.json", 1


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
    """Return the record of a folder, finished or not.

    Raises:
        FileNotFoundError: There is none.
        CorruptArtefact: It was edited or damaged, or names a file outside the folder itself.
        ValueError: Another version of the format.
    """
    path = Path(folder) / RECORD
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {RECORD}; make shards with python -m worldmodel.shards, or record "
            f"those made elsewhere: python -m worldmodel.shards --adopt {folder}"
        )
    record = artefacts.load_record(path)
    if record.get("schema") != SCHEMA:
        raise ValueError(f"{path}: format {record.get('schema')}, this code reads {SCHEMA}")
    for shard in record["shards"]:
        if artefacts.below(folder, shard["file"]).parent != Path(folder):  # a link, perhaps
            raise artefacts.CorruptArtefact(
                f"{path}: {shard['file']!r} is no plain file name; make the shards again"
            )
    return record


def read_folder(folder: str | Path) -> dict[str, Any]:
    """Return the record of a finished folder whose files have the recorded sizes.

    The files are not hashed, which would take seconds per gigabyte; :func:`verify` does that.

    Raises:
        FileNotFoundError: There is no record.
        CorruptArtefact: A file is missing, or of another size than was written.
        ValueError: The folder is unfinished.
    """
    record = load_record(folder)
    if not record["complete"]:
        raise ValueError(f"{folder} is unfinished; run the command that makes it again")
    for shard in record["shards"]:
        path = Path(folder) / shard["file"]
        size = path.stat().st_size if path.is_file() else None
        if size != shard["bytes"]:
            found = "missing" if size is None else f"{size} bytes"
            raise artefacts.CorruptArtefact(
                f"{path}: {found}, but {shard['bytes']} bytes were written; make it again"
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

    Raises:
        FileNotFoundError: There is no record.
    """
    record, problems = load_record(folder), []
    for shard in tqdm(record["shards"], "files", disable=not progress):
        path = Path(folder) / shard["file"]
        try:
            check_tokens(path, read_shard(path), record["config"]["vocab_size"])
            if artefacts.sha256(path) != shard["sha256"]:
                problems.append(f"{path}: sha256 mismatch; it was edited or damaged")
        except FileNotFoundError:
            problems.append(f"{path}: missing")
        except ValueError as error:
            problems.append(str(error))
    return problems


def adopt(folder: str | Path, tokenizer: Tokenizer, progress: bool = True) -> dict[str, Any]:
    """Record files of tokens that were made elsewhere, and return the record.

    Files with ``val`` in their name are for validation, as those of llm.c and modded-nanogpt are.

    Raises:
        FileExistsError: The folder has a record.
        FileNotFoundError: The folder has no ``.bin`` files for training, or none for validation.
        ValueError: A file is no file of tokens, or of another vocabulary than the tokeniser's.
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
                "sha256": artefacts.sha256(path),
            }
        )
    record["complete"] = True
    return artefacts.create_record(folder / RECORD, record)
