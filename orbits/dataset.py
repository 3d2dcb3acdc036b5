"""Datasets as files: an export of what the protocols compute, and its reader.

A dataset is a folder::

    dataset.json             protocol, counts, seed, manifest; written last
    train/00000.npz (+ .json)  the first 4096 sequences of the split, checksummed
    train/00001.npz ...

Every array of ``Protocol.batch`` is stored under its own name. When an export runs again, shards
that are done and match their checksum are skipped, and the others are made; the result is the
same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from orbits import artefacts, protocols
from orbits.manifest import manifest

SHARD = 4096
INDEX = "dataset.json"


def generate(
    out: str | Path,
    protocol: protocols.Protocol,
    counts: Mapping[str, int],
    *,
    seed: int = 0,
    population: str = "force",
    progress: bool = True,
) -> Path:
    """Export the first sequences of each split.

    Args:
        out: Folder of the dataset; made if needed.
        protocol: What to sample and observe.
        counts: Number of sequences per split.
        seed: Seed of the data.
        population: ``pretrain`` or ``force``.
        progress: Show a progress bar.

    Returns:
        The folder.

    Raises:
        ValueError: A count, split, population or seed is impossible, or the folder holds
            something else.
    """
    out = Path(out)
    for split, count in counts.items():
        if count < 1:
            raise ValueError(f"number of {split} sequences must be at least 1, got {count}")
        # Refuses a bad split, population or seed before any file is touched.
        protocol.systems(seed, split, [], population)
    config = {
        "protocol": protocol.config(),
        "population": population,
        "seed": seed,
        "counts": dict(counts),
    }
    claim = out / "config.json"
    if claim.exists():
        if artefacts.load_record(claim) != config:
            raise ValueError(f"{out} holds another dataset; choose another folder")
    elif out.exists() and any(not path.name.startswith(".") for path in out.iterdir()):
        raise ValueError(f"{out} is not empty; choose another folder")
    artefacts.save_record(claim, config)

    shards = [
        (split, number) for split, count in counts.items() for number in range(-(-count // SHARD))
    ]
    for split, number in tqdm(shards, desc="shards", disable=not progress):
        path = out / split / f"{number:05d}.npz"
        if artefacts.is_intact(path):
            continue
        indices = np.arange(number * SHARD, min((number + 1) * SHARD, counts[split]))
        batch = protocol.batch(seed, split, indices, population)
        artefacts.save_arrays(path, batch, {"config": artefacts.key(config)})
    hashes = {
        f"{split}/{number:05d}.npz": artefacts.load_record(
            artefacts.sidecar(out / split / f"{number:05d}.npz")
        )["sha256"]
        for split, number in shards
    }
    artefacts.save_record(
        out / INDEX,
        {"schema": 1, "sha256": hashes, "manifest": manifest(config, seed=seed, inputs={})},
    )
    return out


def read_index(path: str | Path) -> dict[str, Any]:
    """Return the record of a finished dataset: schema, shard hashes, manifest.

    Raises:
        FileNotFoundError: The folder holds no finished dataset.
        CorruptArtefact: The record was edited or damaged.
    """
    index = Path(path) / INDEX
    if not index.is_file():
        raise FileNotFoundError(
            f"{path} holds no finished dataset (no {INDEX}); run `python -m orbits generate` again"
        )
    return artefacts.load_record(index)


class OrbitDataset:
    """A split of an exported dataset; every shard is checked against its sha256 when read.

    Args:
        path: Folder written by :func:`generate`.
        split: train, val or test.

    Raises:
        FileNotFoundError: No finished dataset there.
        ValueError: The dataset has no such split.
        CorruptArtefact: A file is truncated or was edited (raised when it is read).
    """

    def __init__(self, path: str | Path, split: str = "train") -> None:
        self.path, self.split = Path(path), split
        self.record = read_index(path)
        counts = self.record["manifest"]["config"]["counts"]
        if split not in counts:
            raise ValueError(f"{path} has no split {split!r}; choose from {', '.join(counts)}")
        self.length: int = counts[split]
        self._shards: dict[int, dict[str, npt.NDArray]] = {}

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, npt.NDArray]:
        """Return the arrays of one sequence, named as in ``Protocol.batch``.

        Raises:
            IndexError: There is no such sequence.
        """
        if not 0 <= index < self.length:
            raise IndexError(f"sequence {index} of {self.length}")
        number, row = divmod(index, SHARD)
        return {name: array[row] for name, array in self.shard(number).items()}

    def shard(self, number: int) -> dict[str, npt.NDArray]:
        """Return all arrays of one shard, checked against the dataset's record."""
        if number not in self._shards:
            name = f"{self.split}/{number:05d}.npz"
            arrays, _ = artefacts.load_arrays(self.path / name)
            stated = artefacts.load_record(artefacts.sidecar(self.path / name))["sha256"]
            if stated != self.record["sha256"][name]:
                raise artefacts.CorruptArtefact(
                    f"{self.path / name}: not the shard that {INDEX} lists; generate it again"
                )
            self._shards[number] = arrays
        return self._shards[number]
