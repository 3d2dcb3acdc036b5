"""Reader and integrity check of datasets. The format is in ``FORMAT.md``.

A dataset is read by its index alone; the protocol that made it is not needed.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from orbits.observation import DT_ROW, STAR
from orbits.philox import whole
from orbits.runs import artefact
from orbits.runs.cli import called
from orbits.runs.notebook import html_table
from orbits.tokens import TokenLayout

SCHEMA = 2
CLAIM, INDEX = "config.json", "dataset.json"
AGAIN = f"run the same `{called('orbits generate')}` again"
_LARGEST_HEADER = 2**12
"""Largest number of bytes of a ``.npy`` header."""


def read_index(path: str | Path) -> dict[str, Any]:
    """Return the index of a finished dataset.

    Raises:
        FileNotFoundError: The folder holds no finished dataset.
        CorruptArtefact: The index was edited or damaged, or claims what its files cannot hold.
        ValueError: Another version of the format.
    """
    index = Path(path) / INDEX
    if not index.is_file():
        raise FileNotFoundError(f"{path} holds no finished dataset (no {INDEX}); {AGAIN}")
    record = artefact.load_record(index)
    if record.get("schema") != SCHEMA:
        raise ValueError(
            f"{index}: format {record.get('schema')}, this code reads {SCHEMA}; {AGAIN}"
        )
    try:
        agrees = _agrees(record)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError):
        agrees = False
    if not agrees:
        raise artefact.CorruptArtefact(
            f"{index}: its files cannot hold the sequences that it claims; {AGAIN}"
        )
    return record


def _agrees(record: Mapping[str, Any]) -> bool:
    """Tell whether an index lists the files of its sequences, by name and total size."""
    counts, size = record["config"]["counts"], record["config"]["sequences_per_shard"]
    numbers = {split: -(-count // size) for split, count in counts.items()}
    n_files = len(record["arrays"]) * sum(numbers.values())
    if n_files != len(record["sha256"]):  # before as many names are made
        return False
    names = {
        shard_file(split, name, number)
        for split, n in numbers.items()
        for name in record["arrays"]
        for number in range(n)
    }
    sequence = sum(
        math.prod(spec["shape"]) * np.dtype(spec["dtype"]).itemsize
        for spec in record["arrays"].values()
    )
    headers = record["bytes"] - sum(counts.values()) * sequence
    return names == set(record["sha256"]) and 0 <= headers <= n_files * _LARGEST_HEADER


def shard_file(split: str, name: str, number: int) -> str:
    """Return the name of the file of one array of a shard, relative to the dataset."""
    return f"{split}/{name}/{number:05d}.npy"


def _mapped(path: Path, record: Mapping[str, Any], file: str) -> npt.NDArray:
    """Map a file into memory; refuse one that is missing, damaged or not as the index says."""
    check(path, file, record["sha256"][file])
    split, name, number = file.removesuffix(".npy").split("/")
    size, spec = record["config"]["sequences_per_shard"], record["arrays"][name]
    n = min(size, record["config"]["counts"][split] - int(number) * size)
    try:
        values = np.load(path / file, mmap_mode="r")
    except ValueError as error:
        raise artefact.CorruptArtefact(f"{path / file}: {error}") from None
    if values.shape != (n, *spec["shape"]) or values.dtype != spec["dtype"]:
        raise artefact.CorruptArtefact(
            f"{path / file}: holds {values.dtype} {values.shape}, but {INDEX} claims "
            f"{spec['dtype']} {(n, *spec['shape'])}"
        )
    return values


def dataset_hash(hashes: Mapping[str, str]) -> str:
    """Return the sha256 of a dataset: that of its files' hex digests, in the index's order."""
    return hashlib.sha256("".join(hashes.values()).encode()).hexdigest()


def check(path: str | Path, file: str, stated: str) -> None:
    """Refuse a file that is missing, damaged, or not the one that the index lists."""
    if artefact.check_file(artefact.below(path, file))["sha256"] != stated:
        raise artefact.CorruptArtefact(f"{Path(path) / file}: not the file that {INDEX} lists")


def verify(path: str | Path, progress: bool = True) -> list[str]:
    """Hash every file of a dataset again.

    Returns:
        One line for each file that is missing or damaged; none if the dataset is whole.

    Raises:
        FileNotFoundError: There is neither a dataset nor the beginning of one.
    """
    path = Path(path)
    if not (path / INDEX).exists() and not (path / CLAIM).exists():
        raise FileNotFoundError(f"{path} holds no dataset; name the folder that generate wrote")
    index: dict[str, Any] = {"sha256": {}}

    def problem(file: str) -> str | None:
        try:
            if file == CLAIM:
                artefact.load_record(path / file)
            elif file == INDEX:
                index.update(read_index(path))
            else:
                _mapped(path, index, file)
        except FileNotFoundError:
            return f"{path / file}: missing"
        except (OSError, ValueError) as error:
            return str(error)
        return None

    problems = [problem(CLAIM), problem(INDEX)]
    with ThreadPoolExecutor() as pool:  # hashing and reading release the interpreter lock
        files = index["sha256"]
        problems += tqdm(pool.map(problem, files), "files", len(files), disable=not progress)
    return [line for line in problems if line]


class OrbitDataset:
    """A split of a dataset; every file is checked against its sha256 when it is first read.

    Files are mapped into memory, so a dataset may be larger than that. A copy in another process
    (a worker of a DataLoader) opens and checks its files itself.

    Args:
        path: Folder written by ``python -m orbits generate``.
        split: train, val or test.

    Raises:
        FileNotFoundError: No finished dataset there.
        ValueError: The dataset has no such split.
        CorruptArtefact: A file is truncated or was edited (raised when it is read).
    """

    def __init__(self, path: str | Path, split: str = "train") -> None:
        self.path, self.split = Path(path), split
        self.record = read_index(path)
        config = self.record["config"]
        if split not in config["counts"]:
            choices = ", ".join(config["counts"])
            raise ValueError(f"{path} has no split {split!r}; choose from {choices}")
        self.length: int = config["counts"][split]
        self._size: int = config["sequences_per_shard"]
        protocol = config["protocol"]
        self.layout = TokenLayout(
            protocol["low"], protocol["high"], protocol["n_bins"], tuple(protocol["dts"])
        )
        self._open: dict[int, dict[str, npt.NDArray]] = {}

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return "\n".join(f"{name:<9} {text}" for name, text in self._facts())

    def _repr_html_(self) -> str:
        return html_table(self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        """Return the content of the split; lengths are of one sequence."""
        config = self.record["config"]
        protocol, arrays = config["protocol"], self.record["arrays"]
        shift = f", shift {protocol['shift']['name']}" if "shift" in protocol else ""
        counts = {x: n for x, n in config["counts"].items() if x != self.split}
        others = ", ".join(f"{count} {split}" for split, count in counts.items()) or "none"
        shapes = (
            f"{name} {np.dtype(spec['dtype'])} {list(spec['shape'])}"
            for name, spec in arrays.items()
        )
        return [
            (
                "dataset",
                f"{self.path}, split {self.split}: {self.length} sequences; others: {others}",
            ),
            (
                "protocol",
                f"{protocol['name']}, law {protocol['law']}{shift}, seed {config['seed']}",
            ),
            ("arrays", ", ".join(shapes)),
            ("read", "[i] one sequence, .batch([i, j]) several, or a DataLoader"),
        ]

    def __getitem__(self, index: int) -> dict[str, npt.NDArray]:
        """Return the arrays of one sequence, named as in ``Protocol.batch``.

        Raises:
            IndexError: There is no such sequence.
            TypeError: It is not one whole number; :meth:`batch` takes several.
        """
        if isinstance(index, bool | np.bool_):
            raise TypeError(f"a sequence has a number, got {index}")
        return self.__getitems__([operator.index(index)])[0]

    def __getitems__(self, indices: list[int]) -> list[dict[str, npt.NDArray]]:
        """Return several sequences, read together, as a DataLoader fetches its batches."""
        batch = self.batch(indices)
        return [{name: values[k] for name, values in batch.items()} for k in range(len(indices))]

    def batch(self, indices: npt.ArrayLike) -> dict[str, npt.NDArray]:
        """Return these sequences as ``Protocol.batch`` does, without ``coordinates``.

        Args:
            indices: Of sequences of this split, [N].

        Raises:
            IndexError: There is no such sequence.
        """
        index = whole(indices)
        outside = index[(index < 0) | (index >= self.length)]
        if outside.size:
            raise IndexError(f"sequence {outside[0]} is not among the {self.length} of the split")
        number, row = np.divmod(index, self._size)
        for k in np.unique(number):
            self.shard(int(k))  # is as large as the index claims, or refused
        stored = {
            name: np.empty((len(index), *spec["shape"]), spec["dtype"])
            for name, spec in self.record["arrays"].items()
        }
        for k in np.unique(number):
            wanted = number == k
            for name, values in self.shard(int(k)).items():
                stored[name][wanted] = values[row[wanted]]
        tokens = stored["tokens"]
        return {
            "sequence_id": index,
            "tokens": tokens,
            "body": _bodies(stored.pop("n_planets"), tokens.shape[1]),
            "dt": np.asarray(self.layout.dts)[tokens[:, 0, 0] - self.layout.n_bins],
            **stored,
        }

    def shard(self, number: int) -> dict[str, npt.NDArray]:
        """Return the stored arrays of one shard, mapped and checked."""
        if number not in self._open:
            self._open[number] = {
                name: _mapped(self.path, self.record, shard_file(self.split, name, number))
                for name in self.record["arrays"]
            }
        return self._open[number]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}  # a mapped file would travel as its content


def _bodies(n_planets: npt.NDArray[np.uint8], n_rows: int) -> npt.NDArray[np.int8]:
    """Return the body numbers [N, n_rows]: planets 1, 2, ... and the star in turn, after row 0."""
    turn = np.arange(n_rows - 1) % (n_planets[:, None].astype(np.int64) + 1)
    body = np.full((len(n_planets), n_rows), DT_ROW, np.int8)
    body[:, 1:] = np.where(turn == n_planets[:, None], STAR, turn + 1)
    return body
