"""Digests of files and folders, by which the content of an input is part of a cell's address."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from orbits.runs import artefact


def digest(path: str | Path) -> str:
    """Return the sha256 of a file, or that of the names and contents of a folder's files.

    Compiled Python is left out: it appears beside the source as soon as that is imported.
    """
    path = Path(path)
    if not path.is_dir():
        return file_digest(path)
    for link in (x for x in path.rglob("*") if x.is_symlink() and x.is_dir()):
        raise ValueError(f"{link} is a link to a folder; put the folder itself there")
    files = [x for x in path.rglob("*") if x.is_file() and "__pycache__" not in x.parts]
    names = {file.relative_to(path).as_posix(): file_digest(file) for file in files}
    return hashlib.sha256(json.dumps(names, sort_keys=True).encode()).hexdigest()


def name_and_digest(path: str | Path) -> str:
    """Return the name of a file with the first half of its checksum, wherever it lies."""
    return f"{Path(path).name} {file_digest(path)[:32]}"


def file_digest(path: str | Path) -> str:
    """Return the sha256 of a file, which is read once as long as it does not change."""
    path = Path(path).resolve()
    status = path.stat()
    return _digest(path, status.st_size, status.st_mtime_ns)


@functools.cache  # unbounded: a folder may hold a million images
def _digest(path: Path, size: int, modified: int) -> str:
    return artefact.sha256(path)
