"""Columns of a prediction file, read from an ``.npz``, ``.csv`` or ``.parquet``.

A file may come from anyone, so nothing in it is executed (an object array is a pickle and is
never loaded), its declared size is looked at before its data, and only known columns are read.
"""

from __future__ import annotations

import csv
import itertools
import math
import zipfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from symreg.points import NAMES

COLUMNS = ("sequence_id", "step", *NAMES, "force", "force_predicted")
REQUIRED = ("sequence_id", *NAMES, "force_predicted")
VECTORS = ("force_vector", "force_vector_predicted", "position")

TEXTS = ("sequence_id", "units", "model", "protocol", "arm", "labels")
COMPONENTS = {name: (f"{name}_x", f"{name}_y") for name in VECTORS}
"""Columns of a vector's components in a table, which has no columns of shape [n, 2]."""

_KNOWN = {*COLUMNS, *VECTORS, *itertools.chain(*COMPONENTS.values()), *TEXTS, "schema", "seed"}

ENDINGS = (".npz", ".csv", ".parquet")
"""Endings of prediction files."""
MAX_POINTS = 10_000_000
MAX_BYTES = 4 * 2**30
"""Largest size of unpacked data. A small file can declare far more than a machine holds."""
MAX_TEXT = 80
"""Most characters of a text. An array of texts takes the room of its longest in every row."""

Array = npt.NDArray[Any]


class Refused(ValueError):
    """Refusal of a file: the reason in one line, without the file's name."""


def read(path: Path, required: Sequence[str] = REQUIRED) -> dict[str, Array]:
    """Return the known columns of a file by name: numbers, or text in ``TEXTS``.

    Columns of ``required`` must be there. An ``.npz`` keeps its shapes and dtypes, which are the
    caller's to check; the columns of a table have shape [n], and its empty fields are NaN where a
    number is due. What is damaged, too large, missing or no number is :class:`Refused`.
    """
    readers = dict(zip(ENDINGS, (_npz, _csv, _parquet), strict=True))
    kind = path.suffix.lower()
    if kind not in readers:
        raise Refused(f"expected a prediction file that ends in {', '.join(readers)}")
    if not path.stat().st_size:
        raise Refused("the file is empty")
    try:
        return readers[kind](path, required)
    except Refused:
        raise
    except Exception as error:  # a damaged file can fail anywhere in its parser
        reason = str(error) or type(error).__name__
        raise Refused(f"not a complete {kind} file ({reason})") from None


def _npz(path: Path, required: Sequence[str]) -> dict[str, Array]:
    with zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        known = _known(names, required)
        # A zip entry is never unpacked beyond the size it declares.
        _check_bytes(sum(entries[names.index(name)].file_size for name in known))
        return {name: _npy(archive, entries[names.index(name)], name) for name in known}


def _npy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Array:
    """Read one array whose header agrees with its size."""
    header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        if version not in header:
            raise Refused(f"{name} has .npy version {version}, expected (1, 0) or (2, 0)")
        shape, fortran_order, dtype = header[version](file)
        if dtype.hasobject:
            raise Refused(f"{name} is an object array, which is a pickle and is never loaded")
        size, declared = entry.file_size - file.tell(), math.prod(shape) * dtype.itemsize
        if size != declared:
            raise Refused(f"{name} declares shape {shape}, {declared} bytes; it has {size}")
        _check_points(shape[0] if shape else 1)
        flat = np.frombuffer(file.read(), dtype)
    return flat.reshape(shape, order="F" if fortran_order else "C")


def _csv(path: Path, required: Sequence[str]) -> dict[str, Array]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return _table(csv.reader(file, strict=True), required)
    except UnicodeDecodeError:
        raise Refused("not a text file in UTF-8") from None


def _table(rows: Any, required: Sequence[str]) -> dict[str, Array]:
    header = [name.strip() for name in next(rows, [])]
    known = _known(header, required)
    columns: dict[str, Any] = {n: [] if n in TEXTS else array("d") for n in known}
    index = {name: header.index(name) for name in columns}
    n = 0
    for fields in rows:
        if not fields:
            continue
        if len(fields) != len(header):
            raise Refused(f"row {n} has {len(fields)} fields, the header has {len(header)}")
        for name, column in columns.items():
            field = fields[index[name]]
            column.append(_short_enough(name, field) if name in TEXTS else _number(name, field, n))
        n += 1
        _check_points(n)
    return {name: np.array(column) for name, column in columns.items()}


def _number(name: str, field: str, row: int) -> float:
    text = field.strip() or "nan"
    try:
        if "_" in text or not text.isascii():  # Python reads 1_000, and digits of all scripts
            raise ValueError
        return float(text)
    except ValueError:
        raise Refused(f"{name} is not a number in row {row}: {field[:20]!r}") from None


def _parquet(path: Path, required: Sequence[str]) -> dict[str, Array]:
    try:
        from pyarrow import parquet, types  # the extra `parquet`
    except ImportError:
        raise Refused("reading .parquet needs pyarrow: pip install pyarrow") from None
    metadata = parquet.read_metadata(path)
    schema = metadata.schema.to_arrow_schema()
    known = _known(schema.names, required)
    is_text = {name: _is_text(types, name, schema.field(name).type) for name in known}
    _check_points(metadata.num_rows)
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    _check_bytes(sum(group.total_byte_size for group in groups))
    # A text stays encoded until its length is known: repeating it takes a file no room.
    encoded = [name for name in known if is_text[name]]
    with parquet.ParquetFile(
        path, metadata=metadata, read_dictionary=encoded, page_checksum_verification=True
    ) as file:
        table = file.read(columns=known)
    return {
        name: _texts(name, table[name]) if is_text[name] else np.asarray(table[name].to_numpy())
        for name in known
    }


def _is_text(types: Any, name: str, kind: Any) -> bool:
    """Tell text from numbers, and refuse a column of any other type."""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(kind) or types.is_floating(kind):
        return False
    if name in TEXTS and str(kind) in ("string", "large_string", "string_view"):
        return True
    expected = "numbers or text" if name in TEXTS else "numbers"
    raise Refused(f"{name} has type {kind}, expected {expected}")


def _texts(name: str, column: Any) -> Array:
    if column.null_count:
        raise Refused(f"{name} is empty in {column.null_count} of {len(column)} rows")
    for text in column.unique().to_pylist():
        _short_enough(name, text)
    return np.array(column.to_pylist(), dtype=str)


def _known(names: Sequence[str], required: Sequence[str]) -> list[str]:
    """Return the known ones of the names in a file, unless one is missing or is there twice."""
    missing = [name for name in required if name not in names]
    if missing:
        hint = "; columns are separated by commas" if any(";" in name for name in names) else ""
        there = ", ".join(names) or "none"
        raise Refused(f"no column {', '.join(missing)}; it has {there}{hint}")
    known = [name for name in names if name in _KNOWN]
    repeated = sorted({name for name in known if known.count(name) > 1})
    if repeated:
        raise Refused(f"column {', '.join(repeated)} is there more than once")
    return known


def _short_enough(name: str, text: str) -> str:
    if len(text) > MAX_TEXT:
        raise Refused(f"{name} has {len(text)} characters in a row, at most {MAX_TEXT} allowed")
    return text


def _check_points(n: int) -> None:
    if n > MAX_POINTS:
        raise Refused(f"more than {MAX_POINTS:,} points; give a sample of them")


def _check_bytes(n: int) -> None:
    if n > MAX_BYTES:
        raise Refused(
            f"{n / 2**30:.1f} GiB once unpacked, at most {MAX_BYTES // 2**30} GiB allowed"
        )
