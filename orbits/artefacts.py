"""Atomic, checksummed, content-addressed files: an artefact is done, or it is not there.

The one mechanism behind dataset shards, prediction files and result cells. A data file is
written to a temporary name, flushed to disk and renamed; its sidecar ``<file>.json`` (sha256,
size, manifest) is written last and the same way. A file without a sidecar does not count, and
a file that disagrees with its sidecar is refused by name.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np


class CorruptArtefact(ValueError):
    """A file that is missing its sidecar, is truncated, or was edited after it was written."""


def key(config: Mapping[str, Any]) -> str:
    """Return the content address of a configuration: 16 hex digits of its canonical JSON."""
    return hashlib.sha256(_canonical(config)).hexdigest()[:16]


def sha256(path: str | Path) -> str:
    """Return the sha256 of a file's bytes as 64 hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_bytes(path: str | Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` in one step: temporary file, fsync, rename, fsync folder.

    Raises:
        OSError: The disk is full or the folder cannot be written; ``path`` is then unchanged.
    """
    with _staged(Path(path), data) as temporary:
        os.replace(temporary, path)


@contextlib.contextmanager
def _staged(path: Path, data: bytes) -> Iterator[Path]:
    """Yield a complete temporary file beside ``path``, to be renamed by the caller."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}"
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save_record(path: str | Path, record: Mapping[str, Any]) -> None:
    """Write a JSON record that carries the sha256 of its own content."""
    body = dict(record)
    body["record_sha256"] = hashlib.sha256(_canonical(record)).hexdigest()
    write_bytes(path, json.dumps(body, indent=1, allow_nan=True).encode() + b"\n")


def load_record(path: str | Path) -> dict[str, Any]:
    """Read a record written by :func:`save_record`.

    Raises:
        FileNotFoundError: There is no such file.
        CorruptArtefact: The file is not JSON or does not match its checksum.
    """
    text = Path(path).read_bytes()
    try:
        record = json.loads(text)
        stated = record.pop("record_sha256")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CorruptArtefact(
            f"{path}: not a complete record; delete it and make it again"
        ) from None
    if hashlib.sha256(_canonical(record)).hexdigest() != stated:
        raise CorruptArtefact(f"{path}: checksum mismatch; it was edited or damaged, make it again")
    return record


def sidecar(path: str | Path) -> Path:
    """Return the path of the record that vouches for the data file ``path``."""
    return Path(f"{path}.json")


def save_file(path: str | Path, data: bytes, manifest: Mapping[str, Any]) -> None:
    """Write a data file and then the sidecar that makes it count.

    Raises:
        OSError: The disk is full or the folder cannot be written; an older file is then unchanged.
    """
    with _staged(Path(path), data) as temporary:
        sidecar(path).unlink(missing_ok=True)
        os.replace(temporary, path)
    digest = hashlib.sha256(data).hexdigest()
    save_record(sidecar(path), {"sha256": digest, "bytes": len(data), "manifest": dict(manifest)})


def load_file(path: str | Path) -> tuple[bytes, dict[str, Any]]:
    """Read a data file and its manifest, checking the sha256.

    Raises:
        FileNotFoundError: The data file is not there.
        CorruptArtefact: The sidecar is missing, or the file does not match it.
    """
    path = Path(path)
    data = path.read_bytes()
    if not sidecar(path).is_file():
        raise CorruptArtefact(
            f"{path}: no {sidecar(path).name} beside it, so it was never finished"
        )
    record = load_record(sidecar(path))
    if len(data) != record.get("bytes"):
        raise CorruptArtefact(f"{path}: {len(data)} bytes, but {record.get('bytes')} were written")
    if hashlib.sha256(data).hexdigest() != record.get("sha256"):
        raise CorruptArtefact(f"{path}: sha256 mismatch; it was edited or damaged, make it again")
    return data, record["manifest"]


def is_intact(path: str | Path) -> bool:
    """Tell whether ``path`` is there, finished and as it was written."""
    try:
        load_file(path)
    except (FileNotFoundError, CorruptArtefact):
        return False
    return True


def save_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], manifest: Mapping[str, Any]
) -> None:
    """Write named arrays as an ``.npz`` with its sidecar."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    save_file(path, buffer.getvalue(), manifest)


def load_arrays(
    path: str | Path, required: Iterable[str] = ()
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the manifest written by :func:`save_arrays`.

    Raises:
        FileNotFoundError: The file is not there.
        CorruptArtefact: The file does not match its sidecar.
        ValueError: One of the ``required`` arrays is missing; the message names it.
    """
    data, manifest = load_file(path)
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    missing = [name for name in required if name not in arrays]
    if missing:
        raise ValueError(f"{path}: no array {', '.join(missing)}; it holds {', '.join(arrays)}")
    return arrays, manifest


def _canonical(config: Mapping[str, Any]) -> bytes:
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=True).encode()
