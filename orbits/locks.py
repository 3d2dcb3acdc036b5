"""Locks: how two runs are kept out of one results folder.

A disk may have no locks (a network disk without its lock service). A run goes on there after one
line of warning, and whoever starts two in one folder must keep them apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep a second run out of a results folder for as long as this process lives.

    Without locks on the disk, a warning is printed instead.

    Raises:
        ValueError: Another process is running in the folder, or its lock or a folder in it is a
            link.
    """
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links(folder)
    with open_lock(folder / ".lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another run is using {folder}; wait for it or stop it") from None
        except OSError as error:
            print(
                f"warning: {folder} is on a disk without locks ({error.strerror}): "
                "two runs at once are not kept apart there",
                file=sys.stderr,
            )
        yield


def refuse_links(folder: str | Path) -> None:
    """Refuse a results folder in which a link stands for a folder: it may lead outside.

    The folder itself may be one.

    Raises:
        ValueError: There is such a link; the message names it.
    """
    for place, folders, _ in os.walk(folder):
        for name in folders:
            if (link := Path(place, name)).is_symlink():
                raise ValueError(f"{link} is a link to a folder, which may lie anywhere; delete it")


def open_lock(path: Path) -> BinaryIO:
    """Open a file that is there to be locked, and leave its content as it is.

    Raises:
        ValueError: It is a link, which may lead out of its folder.
        OSError: It cannot be made or opened.
    """
    if path.is_symlink():
        raise ValueError(f"{path} is a link; delete it")
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b", 0)
