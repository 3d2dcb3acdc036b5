"""``LABEL:SEED=PATH``: a checkpoint with the name and the seed by which tables show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_NAMED = re.compile(r"(?P<label>.+?):(?P<seed>\d+)=(?P<path>.+)")


class NamedCheckpoint(NamedTuple):
    """A checkpoint file; label and seed are None where only its path was given."""

    label: str | None
    seed: int | None
    path: Path


def named_checkpoint(given: str | Path) -> NamedCheckpoint:
    """Read ``PATH`` or ``LABEL:SEED=PATH``.

    Raises:
        FileNotFoundError: There is no such file.
    """
    match = _NAMED.fullmatch(str(given))
    path = Path(match["path"] if match else given)
    if not path.is_file():
        hint = "; a named checkpoint is LABEL:SEED=PATH" if "=" in str(given) and not match else ""
        raise FileNotFoundError(f"{path}: no such file{hint}")
    if not match:
        return NamedCheckpoint(None, None, path)
    return NamedCheckpoint(match["label"], int(match["seed"]), path)
