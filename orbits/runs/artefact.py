"""Atomic, checksummed, content-addressed files: an artefact is done, or it is not there.

The one mechanism behind dataset shards, prediction files and result cells. A data file is
written to a temporary name, flushed to disk and renamed; its sidecar ``<file>.json`` (sha256,
size, manifest) is written last and the same way. A file without a sidecar does not count, and
a file that disagrees with its sidecar is refused by name. Nothing is ever written in place or
through a memory map: a writer that is killed leaves no file that looks finished.

A folder may come from anywhere: what a manifest names lies below its folder (:func:`below`), and
no link in it is written through.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

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


@contextlib.contextmanager
def replacing(path: str | Path, exclusive: bool = False) -> Iterator[BinaryIO]:
    """Yield a new file; when the block ends, it takes the place of ``path`` in one step.

    The file has a temporary name until it is complete and on disk; then it is renamed, and the
    folder is flushed. If anything fails, ``path`` is unchanged and the temporary file is gone.

    Args:
        path: The file to make; missing folders are made too.
        exclusive: Fail if ``path`` exists. Of several writers at once exactly one succeeds, also
            on a disk without hard links (exFAT, some FUSE); there, ``path`` is an empty file for
            a moment before it has its content, and stays one if the writer is killed in it.

    Raises:
        FileExistsError: ``path`` exists and must not.
        OSError: The disk is full or the folder cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_unlocked(_temporaries(path.parent, os.listdir(path.parent), path.name))
    temporary, file = _temporary(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if exclusive:
                _name(temporary, path)
            else:
                os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        # A failing write does not say of which file; without a number, its text would be lost.
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _temporary(path: Path) -> tuple[Path, BinaryIO]:
    """Make a file beside ``path`` whose lock says that its writer is alive."""
    while True:
        temporary = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
        file = temporary.open("x+b")
        with contextlib.suppress(OSError):  # not every network disk has locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if temporary.exists():  # else another writer found it before it was locked
            return temporary, file
        file.close()


def _name(temporary: Path, path: Path) -> None:
    """Give a finished file its name, unless there is a file of that name."""
    try:
        os.link(temporary, path)  # unlike a rename, it fails where there is a file
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            os.replace(temporary, path)
        except BaseException:
            path.unlink()
            raise
    else:
        temporary.unlink()


def remove_abandoned(folder: str | Path) -> None:
    """Delete the temporary files that killed writers left anywhere below a folder.

    A writer that is alive holds a lock on its file, which stays. So do all on a disk without
    locks, where nothing tells the two apart.
    """
    for place, _, names in os.walk(folder):
        _remove_unlocked(_temporaries(Path(place), names))


def _temporaries(folder: Path, names: Iterable[str], of: str | None = None) -> list[Path]:
    """Return the temporary files of a folder: all, or those of one file."""
    pattern = re.compile(rf"\.{'.+' if of is None else re.escape(of)}\.\d+\.[0-9a-f]+\.tmp")
    return [folder / name for name in names if pattern.fullmatch(name)]


def _remove_unlocked(temporaries: Iterable[Path]) -> None:
    for left in temporaries:
        # For writing, since a network disk locks no other; never through a link.
        with (
            contextlib.suppress(OSError),
            os.fdopen(os.open(left, os.O_RDWR | os.O_NOFOLLOW), "r+b", buffering=0) as file,
        ):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def link(source: str | Path, target: str | Path) -> None:
    """Give a file a second name on the same disk; a copy, where the disk has no hard links.

    Raises:
        FileExistsError: ``target`` exists.
        OSError: The disk is full or the folder cannot be written.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        with open(source, "rb") as original, replacing(target, exclusive=True) as file:
            shutil.copyfileobj(original, file)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` in one step; see :func:`replacing`."""
    with replacing(path) as file:
        file.write(data)


def below(folder: str | Path, name: object) -> Path:
    """Return the path of a file that a manifest names, which must lie below the folder.

    Raises:
        CorruptArtefact: The name is absolute, leads upwards or is no name.
    """
    parts = name.split("/") if isinstance(name, str) else []
    if not parts or "\0" in str(name) or any(part in ("", ".", "..") for part in parts):
        raise CorruptArtefact(f"{folder}: {name!r} names no file below this folder; make it again")
    return Path(folder, *parts)


def save_lines(
    path: str | Path, lines: Iterable[Mapping[str, Any]], manifest: Mapping[str, Any]
) -> None:
    """Write result lines, one JSON object each, in one step and with their sidecar."""
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)
    save_file(path, text.encode(), manifest)


def load_lines(path: str | Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines of :func:`save_lines` and their manifest.

    Raises:
        FileNotFoundError: The file is not there.
        CorruptArtefact: The lines were edited or damaged.
    """
    data, manifest = load_file(path)
    try:
        return [json.loads(line) for line in data.decode().splitlines()], manifest
    except (ValueError, RecursionError):
        raise CorruptArtefact(f"{path}: not lines of JSON; make it again") from None


def save_record(path: str | Path, record: Mapping[str, Any]) -> None:
    """Write a JSON record that carries the sha256 of its own content."""
    write_bytes(path, _checked_json(record))


def create_record(path: str | Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Write a record unless there is one, and return the one that is there.

    Of several writers at once exactly one succeeds, and all get its record.

    Raises:
        CorruptArtefact: The record that is there is damaged.
    """
    path = Path(path)
    if path.exists():
        # A writer that was killed when it was done left its second name.
        _remove_unlocked(_temporaries(path.parent, os.listdir(path.parent), path.name))
    else:
        with contextlib.suppress(FileExistsError), replacing(path, exclusive=True) as file:
            file.write(_checked_json(record))
    for _ in range(100):  # without hard links, it is empty until its writer's next step
        if path.stat().st_size:
            break
        time.sleep(0.01)
    return load_record(path)


def _checked_json(record: Mapping[str, Any]) -> bytes:
    record = json.loads(json.dumps(record))  # as it is read: keys are strings, which sort otherwise
    digest = hashlib.sha256(_canonical(record)).hexdigest()
    text = json.dumps({**record, "record_sha256": digest}, indent=1, allow_nan=True)
    return text.encode() + b"\n"


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
        digest = hashlib.sha256(_canonical(record)).hexdigest()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CorruptArtefact(
            f"{path}: not a complete record; delete it and make it again"
        ) from None
    if digest != stated:
        raise CorruptArtefact(f"{path}: checksum mismatch; it was edited or damaged, make it again")
    return record


def sidecar(path: str | Path) -> Path:
    """Return the path of the record that vouches for the data file ``path``."""
    return Path(f"{path}.json")


def save_file(path: str | Path, data: bytes, manifest: Mapping[str, Any]) -> None:
    """Write a data file and then the sidecar that makes it count.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    _save(path, [data], manifest)


def _save(
    path: str | Path, chunks: Iterable[bytes | memoryview], manifest: Mapping[str, Any]
) -> None:
    digest, size = hashlib.sha256(), 0
    with replacing(path) as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            size += memoryview(chunk).nbytes
    # Until now an older sidecar does not match the new bytes, unless they are the same.
    save_record(
        sidecar(path),
        {"sha256": digest.hexdigest(), "bytes": size, "manifest": dict(manifest)},
    )


def load_file(path: str | Path) -> tuple[bytes, dict[str, Any]]:
    """Read a data file and its manifest, checking the sha256.

    Raises:
        FileNotFoundError: The data file is not there.
        CorruptArtefact: The sidecar is missing, or the file does not match it.
    """
    data = Path(path).read_bytes()
    record = _stated(path, len(data))
    _compare(path, hashlib.sha256(data).hexdigest(), record)
    return data, record["manifest"]


def check_file(path: str | Path) -> dict[str, Any]:
    """Hash a data file without holding it in memory; return its sidecar if the two agree.

    Returns:
        ``sha256``, ``bytes`` and ``manifest``.

    Raises:
        FileNotFoundError: The data file is not there.
        CorruptArtefact: The sidecar is missing, or the file does not match it.
    """
    record = _stated(path, Path(path).stat().st_size)
    _compare(path, sha256(path), record)
    return record


def _stated(path: str | Path, size: int) -> dict[str, Any]:
    if not sidecar(path).is_file():
        raise CorruptArtefact(
            f"{path}: no {sidecar(path).name} beside it, so it was never finished; make it again"
        )
    record = load_record(sidecar(path))
    if size != record.get("bytes"):
        raise CorruptArtefact(
            f"{path}: {size} bytes, but {record.get('bytes')} were written; make it again"
        )
    return record


def _compare(path: str | Path, digest: str, record: Mapping[str, Any]) -> None:
    if digest != record.get("sha256"):
        raise CorruptArtefact(f"{path}: sha256 mismatch; it was edited or damaged, make it again")


def is_intact(path: str | Path) -> bool:
    """Tell whether ``path`` is there, finished and as it was written."""
    try:
        check_file(path)
    except (FileNotFoundError, CorruptArtefact):
        return False
    return True


def save_array(path: str | Path, array: np.ndarray, manifest: Mapping[str, Any]) -> None:
    """Write one array as a raw ``.npy`` with its sidecar, without a copy of it in memory."""
    array = np.ascontiguousarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    _save(path, [header.getvalue(), array.reshape(-1).view(np.uint8).data], manifest)


def save_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], manifest: Mapping[str, Any]
) -> None:
    """Write named arrays as an ``.npz`` with its sidecar."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    save_file(path, buffer.getvalue(), manifest)


def load_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the manifest written by :func:`save_arrays`.

    Raises:
        FileNotFoundError: The file is not there.
        CorruptArtefact: The file does not match its sidecar.
    """
    data, manifest = load_file(path)
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}, manifest


def _canonical(config: Mapping[str, Any]) -> bytes:
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=True).encode()
