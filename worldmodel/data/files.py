"""Datasets in files (``python -m orbits generate``) as data of a training; needs no torch.

The index of a dataset says which world it is of: protocol, population and seed are read from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import protocols
from orbits.dataset.read import AGAIN, OrbitDataset, read_index

DECIDED = ("protocol", "protocol_args", "population", "seed")
"""Settings of OrbitData that a dataset's index decides."""


def settings(path: str | Path) -> dict[str, Any]:
    """Return the settings of OrbitData that a dataset decides, :data:`DECIDED`.

    Raises:
        FileNotFoundError: The folder holds no finished dataset.
        CorruptArtefact: Its index was edited or damaged.
        ValueError: Another version of the format, or its protocol is none of this version.
    """
    config = read_index(path)["config"]
    try:
        theirs, population, seed = (config[name] for name in ("protocol", "population", "seed"))
        name = theirs["name"]
        usual = protocols.get(name).config()
        overrides = {
            key: theirs[key]
            for key in protocols.OVERRIDES
            if key in theirs and theirs[key] != usual.get(key)
        }
        made = json.loads(json.dumps(protocols.get(name, overrides).config()))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: its index describes no protocol ({error}); {AGAIN}") from None
    if made != theirs:
        differ = sorted(key for key in {*made, *theirs} if made.get(key) != theirs.get(key))
        raise ValueError(
            f"{path}: protocol {name!r} of this version differs in {', '.join(differ)}; {AGAIN}"
        )
    values = (name, overrides or None, population, seed)
    return dict(zip(DECIDED, values, strict=True))


def counts(path: str | Path) -> dict[str, int]:
    """Return the number of sequences of each split of a dataset."""
    return dict(read_index(path)["config"]["counts"])


def batch(dataset: OrbitDataset, indices: Sequence[int]) -> dict[str, npt.NDArray]:
    """Return sequences as ``Protocol.batch`` does, read from files.

    Exact places are not stored: ``coordinates`` are the centres of the bins, zero in row 0.
    """
    found = dataset.batch(indices)
    coordinates = np.zeros(found["tokens"].shape)
    coordinates[:, 1:] = dataset.layout.decode(found["tokens"][:, 1:])
    return {**found, "coordinates": coordinates}
