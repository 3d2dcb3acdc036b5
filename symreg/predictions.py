"""Prediction files: the true and the predicted force at each step of held-out sequences.

The one thing that passes from a model to the symbolic search. An ``.npz`` written by
:func:`orbits.artefacts.save_arrays`, or a ``.csv`` with a header for data made elsewhere.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import artefacts
from symreg.points import NAMES

COLUMNS = ("sequence_id", "step", *NAMES, "force", "force_predicted")
VECTORS = ("force_vector", "force_vector_predicted", "position")


@dataclass(frozen=True)
class Predictions:
    """Points of a prediction file, in file order.

    Attributes:
        sequence_id: The sequence of each point, shape [n].
        step: The position in its sequence, shape [n].
        X: Distance r (AU) and masses m1, m2 (solar masses), shape [n, 3].
        force: True magnitude, shape [n], solar mass AU / year^2.
        force_predicted: Predicted magnitude, shape [n], same unit.
        vectors: Those of ``VECTORS`` that the file holds, each of shape [n, 2].
        manifest: How the file came to be; empty for a CSV.
        sha256: Checksum of the file.
    """

    sequence_id: npt.NDArray[Any]
    step: npt.NDArray[np.int64]
    X: npt.NDArray[np.float64]
    force: npt.NDArray[np.float64]
    force_predicted: npt.NDArray[np.float64]
    vectors: Mapping[str, npt.NDArray[np.float64]]
    manifest: Mapping[str, Any]
    sha256: str

    def __len__(self) -> int:
        return len(self.force)

    def subsample(self, seed: int, n: int = 1000) -> Predictions:
        """Return ``n`` points drawn without replacement (all, if there are fewer), in file order.

        Args:
            seed: Seed of the draw; Vafa et al. (2025) draw 1000 points per search likewise.
            n: Number of points.
        """
        if n < 1:
            raise ValueError(f"n must be positive, got {n}")
        if n >= len(self):
            return self
        chosen = np.sort(np.random.default_rng(seed).choice(len(self), size=n, replace=False))
        return replace(
            self,
            sequence_id=self.sequence_id[chosen],
            step=self.step[chosen],
            X=self.X[chosen],
            force=self.force[chosen],
            force_predicted=self.force_predicted[chosen],
            vectors={name: array[chosen] for name, array in self.vectors.items()},
        )

    def cosine(self) -> float | None:
        """Return the mean cosine between true and predicted force vectors, or None without them."""
        if not {"force_vector", "force_vector_predicted"} <= set(self.vectors):
            return None
        true, predicted = self.vectors["force_vector"], self.vectors["force_vector_predicted"]
        lengths = np.linalg.norm(true, axis=1) * np.linalg.norm(predicted, axis=1)
        defined = lengths > 0
        if not defined.any():
            return None
        return float(np.mean(np.sum(true * predicted, axis=1)[defined] / lengths[defined]))


def read(path: str | Path) -> Predictions:
    """Read a prediction file.

    Args:
        path: ``.npz`` with its sidecar, or ``.csv`` with a header line.

    Raises:
        FileNotFoundError: There is no such file.
        orbits.artefacts.CorruptArtefact: An ``.npz`` that does not match its sidecar.
        ValueError: A column is missing, lengths differ, or a value is not usable; the message
            names the file and the column.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    if path.suffix == ".npz":
        arrays, manifest = artefacts.load_arrays(path, required=COLUMNS)
    elif path.suffix == ".csv":
        arrays, manifest = _read_csv(path), {}
    else:
        raise ValueError(f"{path}: expected a .npz or .csv prediction file")
    vectors = {name: np.asarray(arrays[name], float) for name in VECTORS if name in arrays}
    _check(path, arrays, vectors)
    return Predictions(
        sequence_id=arrays["sequence_id"],
        step=arrays["step"].astype(np.int64),
        X=np.column_stack([arrays[name] for name in NAMES]).astype(np.float64),
        force=arrays["force"].astype(np.float64),
        force_predicted=arrays["force_predicted"].astype(np.float64),
        vectors=vectors,
        manifest=manifest,
        sha256=artefacts.sha256(path),
    )


def _check(path: Path, arrays: Mapping[str, Any], vectors: Mapping[str, Any]) -> None:
    n = len(np.atleast_1d(arrays["force"]))
    for name in COLUMNS:
        if arrays[name].shape != (n,):
            raise ValueError(f"{path}: {name} has shape {arrays[name].shape}, expected ({n},)")
    for name, array in vectors.items():
        if array.shape != (n, 2):
            raise ValueError(f"{path}: {name} has shape {array.shape}, expected ({n}, 2)")
    if not n:
        raise ValueError(f"{path}: no points")
    for name in (*NAMES, "force"):
        if not np.all(np.isfinite(arrays[name]) & (arrays[name] > 0)):
            raise ValueError(f"{path}: {name} must be positive and finite everywhere")


def _read_csv(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            _require(path, table.fieldnames or ())
            rows = list(table)
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path}: not a CSV text file") from None
    try:
        columns = {name: np.array([float(row[name]) for row in rows]) for name in COLUMNS[1:]}
    except (TypeError, ValueError):
        raise ValueError(f"{path}: a value is not a number") from None
    return {"sequence_id": np.array([row["sequence_id"] for row in rows]), **columns}


def _require(path: Path, found: Iterable[str]) -> None:
    found = set(found)
    missing = [name for name in COLUMNS if name not in found]
    if missing:
        raise ValueError(f"{path}: no column {', '.join(missing)}; needs {', '.join(COLUMNS)}")
