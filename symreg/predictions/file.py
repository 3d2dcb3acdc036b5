"""Points of a prediction file, read and checked, and the draws of a search among them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import laws
from orbits.runs import artefact
from symreg import points
from symreg.points import NAMES
from symreg.predictions import formats
from symreg.predictions.formats import MAX_TEXT
from symreg.predictions.table import Table, positive
from symreg.search.targets import MINIMUM_POINTS

ONE_IN = 5
"""Number of sequences of which one is held out, to judge the formulas of a search on the others."""
MINIMUM_USABLE = 25
"""Points with a logarithm that a file must have: without one in ``ONE_IN`` of them, the
``MINIMUM_POINTS`` that a search needs are left."""
LAW_TOLERANCE = 0.02
"""Relative difference up to which a stated true force is the law's. States of the published
protocol are so coarse that it is 0.5% at their 99th percentile, and 3% at most."""
LAW_SHARE = 0.01
"""Largest share of true forces that may differ by more."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Predictions:
    """Points of a prediction file, in file order.

    Attributes:
        sequence_id: The sequence of each point, shape [n]: numbers or text.
        step: The position in its sequence, shape [n].
        X: Distance r (AU) and masses m1, m2 (solar masses), shape [n, 3], positive.
        force: True magnitude, shape [n], solar mass AU / year^2, positive.
        force_predicted: Predicted magnitude, shape [n], same unit; any number, NaN or infinite.
        vectors: Vectors of ``formats.VECTORS`` that the file holds, each of shape [n, 2].
        row: Names of the file's row in a table: model, protocol, arm, labels and seed.
        manifest: Provenance of the file; empty where it has no sidecar.
        sha256: Checksum of the file.
    """

    sequence_id: Array
    step: npt.NDArray[np.int64]
    X: npt.NDArray[np.float64]
    force: npt.NDArray[np.float64]
    force_predicted: npt.NDArray[np.float64]
    vectors: Mapping[str, npt.NDArray[np.float64]]
    row: Mapping[str, Any]
    manifest: Mapping[str, Any]
    sha256: str

    def __len__(self) -> int:
        return len(self.force)

    @property
    def dropped(self) -> float:
        """The share of points whose prediction has no logarithm, which no figure can cover."""
        return points.usable(self.X, self.force_predicted, at_least=0)[1]

    def split(self, seed: int, n: int = 1000) -> tuple[Predictions, Predictions]:
        """Return points to search, and points of other sequences to judge the formulas found.

        Points of one sequence share their masses and the model's errors, so one in ``ONE_IN``
        sequences is held out whole, and the search sees ``n`` usable points of the others, drawn
        without replacement. With too few sequences for that, one in ``ONE_IN`` points is held out.
        """
        if n < 1:
            raise ValueError(f"cannot search {n} points; n must be positive")
        rng = np.random.default_rng(seed)
        usable, _ = points.usable(self.X, self.force_predicted, at_least=0)
        held_out = self._held_out_sequences(rng, usable)
        if held_out is None:
            held_out = _one_in(rng, usable) | _one_in(rng, ~usable)
        others = np.flatnonzero(usable & ~held_out)
        searched = np.sort(rng.choice(others, min(n, len(others)), replace=False))
        return self._take(searched), self._take(held_out)

    def _held_out_sequences(
        self, rng: np.random.Generator, usable: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_] | None:
        """Draw sequences; None if these or the others have too few usable points."""
        sequences = np.unique(self.sequence_id)
        drawn = rng.choice(sequences, len(sequences) // ONE_IN, replace=False)
        held_out = np.isin(self.sequence_id, drawn)
        searchable, judging = (usable & ~held_out).sum(), (usable & held_out).sum()
        enough = searchable >= MINIMUM_POINTS and judging >= MINIMUM_USABLE - MINIMUM_POINTS
        return held_out if enough else None

    def _take(self, rows: Array) -> Predictions:
        """Return the points of a mask [n] or of indices."""
        return replace(
            self,
            sequence_id=self.sequence_id[rows],
            step=self.step[rows],
            X=self.X[rows],
            force=self.force[rows],
            force_predicted=self.force_predicted[rows],
            vectors={name: array[rows] for name, array in self.vectors.items()},
        )

    def cosine(self) -> float | None:
        """Return the mean cosine between true and predicted force vectors, or None without them."""
        if not {"force_vector", "force_vector_predicted"} <= set(self.vectors):
            return None
        true, predicted = self.vectors["force_vector"], self.vectors["force_vector_predicted"]
        with np.errstate(all="ignore"):  # a prediction may be NaN or infinite
            lengths = np.linalg.norm(true, axis=1) * np.linalg.norm(predicted, axis=1)
            cosines = np.sum(true * predicted, axis=1) / lengths
        defined = np.isfinite(lengths) & (lengths > 0)
        return float(np.mean(cosines[defined])) if defined.any() else None


def read(path: str | Path, law: str = "newton") -> Predictions:
    """Read a prediction file.

    Args:
        path: ``.npz``, ``.csv`` with a header line, or ``.parquet``. If there is a sidecar
            ``<file>.json``, the file must agree with it.
        law: The law of the true force: its magnitude where the file does not state it; a force
            that the file states, as a number or as a vector, must be the law's.

    Raises:
        FileNotFoundError: There is no such file.
        orbits.runs.artefact.CorruptArtefact: The file does not match its sidecar.
        ValueError: There is no such law, or the file is refused: one line with its name, the
            column, how many values are wrong and the first such row, counted from 0.
    """
    path, target = Path(path), laws.get(law)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        return _predictions(path, target)
    except artefact.CorruptArtefact:
        raise  # it names the file
    except ValueError as error:
        raise ValueError(f"{_printable(str(path))}: {_short(_printable(str(error)))}") from None


def _predictions(path: Path, law: laws.Law) -> Predictions:
    if not path.is_file():
        raise ValueError("a folder or a device, not a file")
    manifest, sha256 = _provenance(path)
    columns = formats.read(path)
    lengths = Counter(len(column) for column in columns.values() if column.ndim)
    table = Table(columns, max(lengths, key=lengths.__getitem__, default=0))
    if not table.n:
        raise ValueError("no points")
    table.check_units()
    predicted = table.numbers("force_predicted")
    X = np.column_stack([table.magnitudes(name) for name in NAMES])
    points.usable(X, predicted, at_least=MINIMUM_USABLE)
    force = _force(law, X)
    if (told := laws.law_of(manifest)) is not None:
        _check_told(told, law, X, force)
    if "force" in table:
        force = _of_law(law, "force", table.magnitudes("force"), force)
    vectors = table.vectors()
    if "force_vector" in vectors:
        _of_law(law, "force_vector", np.linalg.norm(vectors["force_vector"], axis=1), force)
    return Predictions(
        sequence_id=table.sequence_id(),
        step=table.step(),
        X=X,
        force=force,
        force_predicted=predicted,
        vectors=vectors,
        row=table.row(path.stem[:MAX_TEXT], _recorded_row(manifest)),
        manifest=manifest,
        sha256=sha256,
    )


def _provenance(path: Path) -> tuple[dict[str, Any], str]:
    """Return the manifest and the checksum of a file, which must agree with a sidecar."""
    if not artefact.sidecar(path).exists():
        return {}, artefact.sha256(path)
    record = artefact.check_file(path)
    if not isinstance(record.get("manifest"), dict):
        raise ValueError("its sidecar has no manifest")
    return record["manifest"], record["sha256"]


def _check_told(told: str, law: laws.Law, X: npt.NDArray[np.float64], force: Array) -> None:
    """Refuse a law whose force is not that of the law that the sidecar tells."""
    try:
        own = laws.get(told).magnitude(*X.T)
    except (ValueError, OverflowError):
        return  # of a plug-in that is not there; the forces themselves are compared
    if not np.allclose(own, force, rtol=1e-6, atol=0):
        raise ValueError(f"its forces are of law {told}: add --law {shlex.quote(told)}")


def _recorded_row(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row that our own training wrote in the sidecar, if any."""
    config = manifest.get("config")
    row = config.get("row") if isinstance(config, dict) else None
    return row if isinstance(row, dict) else {}


def _force(law: laws.Law, X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    with np.errstate(all="ignore"):  # what overflows is refused by its row
        return positive(f"force ({law.name})", law.magnitude(*X.T))


def _of_law(law: laws.Law, column: str, stated: Array, force: Array) -> Array:
    """Return the magnitude [n] that a column states, unless it is not the force [n] of the law."""
    with np.errstate(over="ignore"):  # a ratio beyond float64 is off
        off = np.flatnonzero(np.abs(stated / force - 1) > LAW_TOLERANCE)
    if len(off) > LAW_SHARE * len(stated):
        raise ValueError(
            f"{column} is not that of {law.name} in {len(off)} of {len(stated)} points, first row "
            f"{off[0]}: choose its law with --law, or drop the column"
        )
    return stated


def _one_in(rng: np.random.Generator, among: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Draw one in ``ONE_IN`` of the points of a mask [n], as a mask [n]."""
    rows = np.flatnonzero(among)
    drawn = np.zeros(len(among), bool)
    drawn[rng.choice(rows, len(rows) // ONE_IN, replace=False)] = True
    return drawn


def _printable(text: str) -> str:
    """Return one line: a name or a value in a hostile file may hold line breaks and escapes."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def _short(message: str, most: int = 150) -> str:
    return message if len(message) <= most else f"{message[: most - 3]}..."
