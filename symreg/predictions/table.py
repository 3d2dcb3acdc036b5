"""The columns of a prediction file, checked: values that pass are usable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symreg.predictions.formats import COMPONENTS, MAX_TEXT

UNITS = "AU, solar mass, year"
SCHEMA = 1
ROW = {"model": "", "protocol": "own data", "arm": "-", "labels": "-", "seed": 0}
"""Names of a file's row in a table of results, and their defaults."""

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """The columns of a file by name, as read. Every method raises a ValueError of one line.

    Attributes:
        columns: Arrays by name; n points.
        n: Number of points.
    """

    columns: Mapping[str, Array]
    n: int

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def numbers(self, name: str, *shape: int) -> Floats:
        """Return a numeric column of shape [n, *shape] in float64."""
        column = self.columns[name]
        if column.shape != (self.n, *shape):
            raise ValueError(f"{name} has shape {column.shape}, expected {(self.n, *shape)}")
        if column.dtype.kind not in "iuf":
            raise ValueError(f"{name} has dtype {column.dtype}, expected numbers")
        with np.errstate(over="ignore"):  # a value beyond float64 is infinite, and told as such
            return column.astype(np.float64)

    def magnitudes(self, name: str) -> Floats:
        """Return a column of positive, finite numbers, shape [n]."""
        return positive(name, self.numbers(name))

    def vectors(self) -> dict[str, Floats]:
        """Return the vectors that are there, each of shape [n, 2].

        A predicted one may be NaN or infinite in places; the others are finite.
        """
        arrays = {}
        for name, components in COMPONENTS.items():
            there = [component for component in components if component in self]
            if name in self:
                arrays[name] = self.numbers(name, 2)
            elif there:
                if len(there) != 2:
                    raise ValueError(f"{there[0]} is there without the other component")
                arrays[name] = np.column_stack([self.numbers(component) for component in there])
        for name in ("position", "force_vector"):
            if name in arrays:
                _refuse(name, "finite", np.any(~np.isfinite(arrays[name]), axis=1), arrays[name])
        return arrays

    def sequence_id(self) -> Array:
        """Return the sequence of each point, shape [n]: finite numbers or text."""
        column = self.columns["sequence_id"]
        if column.dtype.kind != "U":
            values = self.numbers("sequence_id")
            _refuse("sequence_id", "finite", ~np.isfinite(values), values)
        elif column.shape != (self.n,):
            raise ValueError(f"sequence_id has shape {column.shape}, expected {(self.n,)}")
        return column

    def step(self) -> npt.NDArray[np.int64]:
        """Return the position of each point in its sequence, shape [n]."""
        if "step" not in self:
            _, sequence, lengths = np.unique(
                self.sequence_id(), return_inverse=True, return_counts=True
            )
            starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
            step = np.empty(self.n, np.int64)
            step[np.argsort(sequence, kind="stable")] = np.arange(self.n) - starts
            return step
        values = self.numbers("step")
        with np.errstate(invalid="ignore"):
            whole = (np.abs(values) < 2**53) & (values == np.floor(values))
        _refuse("step", "a whole number", ~whole, values)
        return values.astype(np.int64)

    def constant(self, name: str) -> str | int | float:
        """Return the one value of a column that holds one: an array of shape [] or [n]."""
        column = self.columns[name]
        if column.shape not in ((), (self.n,)):
            raise ValueError(f"{name} has shape {column.shape}, expected () or {(self.n,)}")
        if column.dtype.kind not in "iufU":
            raise ValueError(f"{name} has dtype {column.dtype}, expected text or a number")
        values = column.ravel()
        others = np.flatnonzero(values != values[0])
        if len(others):
            first, other = values[0].item(), values[others[0]].item()
            raise ValueError(
                f"{name} must be constant: {first!r}, then {other!r} in row {others[0]}"
            )
        return values[0].item()

    def check_units(self) -> None:
        """Refuse another unit system or another version of the format."""
        for name, expected in (("units", UNITS), ("schema", SCHEMA)):
            if name in self and self.constant(name) != expected:
                raise ValueError(f"{name} is {self.constant(name)!r}, expected {expected!r}")

    def row(self, model: str, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Return the names of the file's row: by its columns, by ``recorded``, or by ROW.

        Names are text and the seed is a whole number, or None where training had none. ``recorded``
        is the row that training wrote; a name that does not apply to it is None.
        """
        row: dict[str, Any] = {**ROW, "model": model}
        for name, default in row.items():
            value = self.constant(name) if name in self else recorded.get(name, default)
            if name == "seed":
                row[name] = _seed(value)
            else:
                row[name] = _name(name, default if value is None else value)
        return row


def positive(name: str, values: Floats) -> Floats:
    """Return ``values`` [n] if they are positive and finite, else refuse them by name."""
    _refuse(name, "positive and finite", ~(np.isfinite(values) & (values > 0)), values)
    return values


def _seed(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a table may hold whole numbers as floats
    if value is not None and (type(value) is not int or value < 0):  # a bool is an int too
        raise ValueError(f"seed is {value!r}, expected a whole number, 0 or more")
    return value


def _name(name: str, value: Any) -> str:
    """Return a name as text, or refuse one that cannot stand in a cell of a table."""
    text = str(value) if isinstance(value, int | float) else value
    if not (isinstance(text, str) and text.isprintable() and 0 < len(text) <= MAX_TEXT):
        raise ValueError(f"{name} must be 1 to {MAX_TEXT} printable characters, got {value!r}")
    return text


def _refuse(name: str, rule: str, bad: npt.NDArray[np.bool_], values: Floats) -> None:
    """Raise if a value is bad: say how many are, and which is the first."""
    rows = np.flatnonzero(bad)
    if len(rows):
        raise ValueError(
            f"{name} must be {rule}: {len(rows)} of {len(bad)} are not, "
            f"first {values[rows[0]]} in row {rows[0]}"
        )
