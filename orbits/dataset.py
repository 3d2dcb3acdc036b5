"""Reading a dataset, and telling whether it is whole. The format is in ``FORMAT.md``.

Nothing here needs the protocol that made the data: a dataset is read by what its index says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from orbits import artefacts
from orbits.observation import DT_ROW, STAR
from orbits.tokens import TokenLayout

SCHEMA = 2
CLAIM, INDEX = "config.json", "dataset.json"
AGAIN = "run the same `python -m orbits generate` again"


def read_index(path: str | Path) -> dict[str, Any]:
    """Return the index of a finished dataset.

    Raises:
        FileNotFoundError: The folder holds no finished dataset.
        CorruptArtefact: The index was edited or damaged.
        ValueError: Another version of the format.
    """
    index = Path(path) / INDEX
    if not index.is_file():
        raise FileNotFoundError(f"{path} holds no finished dataset (no {INDEX}); {AGAIN}")
    record = artefacts.load_record(index)
    if record.get("schema") != SCHEMA:
        raise ValueError(
            f"{index}: format {record.get('schema')}, this code reads {SCHEMA}; {AGAIN}"
        )
    return record


def dataset_hash(hashes: Mapping[str, str]) -> str:
    """Return one sha256 for a dataset: of its files' hex digests, in the order of the index."""
    return hashlib.sha256("".join(hashes.values()).encode()).hexdigest()


def check(path: str | Path, file: str, stated: str) -> None:
    """Refuse a file that is not the one that the index lists.

    Raises:
        FileNotFoundError: It is not there.
        CorruptArtefact: It has no sidecar, does not match it or the index, or is outside.
    """
    if artefacts.check_file(artefacts.below(path, file))["sha256"] != stated:
        raise artefacts.CorruptArtefact(f"{Path(path) / file}: not the file that {INDEX} lists")


def verify(path: str | Path, progress: bool = True) -> list[str]:
    """Hash every file of a dataset again.

    Returns:
        One line for each file that is missing or damaged; none if the dataset is whole.

    Raises:
        FileNotFoundError: There is neither a dataset nor the beginning of one.
    """
    path = Path(path)
    if not (path / INDEX).exists() and not (path / CLAIM).exists():
        raise FileNotFoundError(f"{path} holds no dataset")
    hashes: dict[str, str] = {}

    def problem(file: str) -> str | None:
        try:
            if file == CLAIM:
                artefacts.load_record(path / file)
            elif file == INDEX:
                hashes.update(read_index(path)["sha256"])
            else:
                check(path, file, hashes[file])
        except FileNotFoundError:
            return f"{path / file}: missing"
        except (OSError, ValueError) as error:
            return str(error)
        return None

    problems = [problem(CLAIM), problem(INDEX)]
    with ThreadPoolExecutor() as pool:  # hashing and reading release the interpreter lock
        problems += tqdm(pool.map(problem, hashes), "files", len(hashes), disable=not progress)
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

    def __getitem__(self, index: int) -> dict[str, npt.NDArray]:
        """Return the arrays of one sequence, named as in ``Protocol.batch``.

        Raises:
            IndexError: There is no such sequence.
        """
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[dict[str, npt.NDArray]]:
        """Return several sequences, read together; a DataLoader asks for its batches like this."""
        batch = self.batch(indices)
        return [{name: values[k] for name, values in batch.items()} for k in range(len(indices))]

    def batch(self, indices: npt.ArrayLike) -> dict[str, npt.NDArray]:
        """Return what ``Protocol.batch`` returns for these indices, without ``coordinates``.

        Args:
            indices: Of sequences of this split, [N].

        Raises:
            IndexError: There is no such sequence.
        """
        index = np.asarray(indices, np.int64).reshape(-1)
        outside = index[(index < 0) | (index >= self.length)]
        if outside.size:
            raise IndexError(f"sequence {outside[0]} of {self.length}")
        stored = {
            name: np.empty((len(index), *spec["shape"]), spec["dtype"])
            for name, spec in self.record["arrays"].items()
        }
        number, row = np.divmod(index, self._size)
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
            files = {
                name: f"{self.split}/{name}/{number:05d}.npy" for name in self.record["arrays"]
            }
            for file in files.values():
                check(self.path, file, self.record["sha256"][file])
            self._open[number] = {
                name: np.load(self.path / file, mmap_mode="r") for name, file in files.items()
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
