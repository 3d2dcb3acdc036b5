"""Locks: two runs are kept out of one results folder, and two processes off one cell.

A disk may have no locks (a network disk without its lock service). A run goes on there after one
line of warning, and whoever starts two in one folder must keep them apart.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep a second run out of a results folder until the block ends.

    Without locks on the disk, a warning is printed instead.

    Raises:
        ValueError: Another process is running in the folder, or its lock or a folder in it is a
            link.
    """
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links(folder)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_file_lock(folder / ".lock").acquire(timeout=0))
        except Timeout:
            raise ValueError(f"another run is using {folder}; wait for it or stop it") from None
        except OSError as error:
            print(
                f"warning: {folder} is on a disk without locks ({error.strerror}): "
                "two runs at once are not kept apart there",
                file=sys.stderr,
            )
        yield


@contextlib.contextmanager
def cell_lock(out: Path, key: str) -> Iterator[None]:
    """Keep other processes, on any machine that sees the folder, off one cell; wait for them."""
    (out / ".locks").mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # the run has warned of a disk without locks
            stack.enter_context(_file_lock(out / ".locks" / key).acquire())
        yield


def refuse_links(folder: str | Path) -> None:
    """Refuse a results folder in which a link stands for a folder: it may lead outside.

    The folder itself may be one.
    """
    for place, folders, _ in os.walk(folder):
        for name in folders:
            if (link := Path(place, name)).is_symlink():
                raise ValueError(f"{link} is a link to a folder, which may lie anywhere; delete it")


def _file_lock(path: Path) -> FileLock:
    """Return the lock of a file that is made if need be and whose content stays as it is."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link; delete it")
    return FileLock(path, fallback_to_soft=False, preserve_lock_file=True)
