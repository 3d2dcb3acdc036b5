"""Good prediction files and archives, and every way to break an .npz, with what is said of it."""

import csv
import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from orbits.runs import artefact
from symreg import predictions

N = 40
FORMATS = ("npz", "csv", "parquet")


def columns(**changes):
    """Return good columns with changes; None takes a column away."""
    rng = np.random.default_rng(0)
    r, m1, m2 = rng.uniform(0.5, 2, (3, N))
    force = 39.5 * m1 * m2 / r**2
    good = {"sequence_id": np.arange(N) // 10, "r": r, "m1": m1, "m2": m2}
    good |= {"force": force, "force_predicted": 1.1 * force}
    return {name: array for name, array in {**good, **changes}.items() if array is not None}


def with_value(name, value, row=7):
    """Return one good column with one value changed."""
    column = columns()[name].astype(float)
    column[row] = value
    return {name: column}


def table(values):
    """Repeat constants: a table has no arrays of shape []."""
    return {name: np.full(N, v) if np.ndim(v) == 0 else v for name, v in values.items()}


def write(path, **changes):
    """Write the columns in the format of the file's ending."""
    values = columns(**changes)
    if path.suffix == ".npz":
        np.savez(path, **values)
    elif path.suffix == ".csv":
        values = table(values)
        with open(path, "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(values)
            out.writerows(zip(*(array.tolist() for array in values.values()), strict=True))
    else:
        parquet.write_table(pa.table(table(values)), path, write_page_checksum=True)


# Faults of single values, which every format can hold: id -> (changes, text of the refusal)
VALUES = {
    f"no_{name}": ({name: None}, f"no column {name}")
    for name in ("sequence_id", "r", "m1", "m2", "force_predicted")
}
VALUES |= {
    f"{name}_{value}": (with_value(name, value), f"{name} must be positive and finite: 1 of 40")
    for name in ("r", "m1", "m2", "force")
    for value in (np.nan, np.inf, -1.0, 0.0)
}
VALUES |= {
    "every_r_negative": ({"r": -np.ones(N)}, "40 of 40 are not, first -1.0 in row 0"),
    "r_overflows_the_law": ({"force": None, "r": np.full(N, 1e-200)}, "force (newton) must be"),
    "r_underflows_the_law": ({"force": None, "r": np.full(N, 1e200)}, "force (newton) must be"),
    "all_predictions_nan": ({"force_predicted": np.full(N, np.nan)}, "only 0 of 40 points"),
    "all_predictions_zero": ({"force_predicted": np.zeros(N)}, "only 0 of 40 points"),
    "24_predictions": ({"force_predicted": np.arange(N) - 15.0}, "only 24 of 40 points"),
    "no_points": ({name: array[:0] for name, array in columns().items()}, "no points"),
    "24_points": ({n: a[:24] for n, a in columns().items()}, "only 24 of 24 points"),
    "force_of_another_law": (
        {"force": columns()["force"] / columns()["r"]},
        "force is not that of newton in 40 of 40 points, first row 0: choose its law with --law, "
        "or drop the column",
    ),
    "force_beyond_float64_of_the_law": (
        {"force": np.full(N, 1e308), "m1": np.full(N, 1e-200)},
        "force is not that of newton in 40 of 40",
    ),
    "force_off_by_2_5_percent": (
        {"force": columns()["force"] * np.where(np.arange(N) % 2, 1.025, 1.0)},
        "force is not that of newton in 20 of 40 points, first row 1: ",
    ),
    "units_si": ({"units": "kg, m, s"}, "units is 'kg, m, s', expected 'AU, solar mass, year'"),
    "units_of_days": ({"units": "AU, solar mass, day"}, "units is 'AU, solar mass, day'"),
    "schema_2": ({"schema": 2}, "expected 1"),
    "seed_negative": ({"seed": -1}, "seed is -1"),
    "seed_fraction": ({"seed": 0.5}, "seed is 0.5"),
    "seed_nan": ({"seed": np.nan}, "seed must be constant: nan"),
    "seed_varies": ({"seed": np.arange(N)}, "seed must be constant: 0"),
    "model_varies": ({"model": np.array(["a", "b"] * 20)}, "constant: 'a', then 'b' in row 1"),
    "model_empty": ({"model": ""}, "model must be 1 to 80 printable"),
    "model_escapes": ({"model": "\x1b[2J"}, "model must be 1 to 80 printable"),
    "model_long": ({"model": "m" * 81}, "model "),
    "arm_tab": ({"arm": "a\tb"}, "arm must be 1 to 80 printable"),
    "protocol_zero_width": ({"protocol": "a\u200bb"}, "protocol must be 1 to 80 printable"),
    "step_fraction": ({"step": np.arange(N) + 0.5}, "step must be a whole number: 40 of 40"),
    "step_nan": ({"step": np.r_[np.nan, np.arange(N - 1)]}, "step must be a whole number: 1"),
    "step_huge": ({"step": np.full(N, 1e300)}, "step must be a whole number"),
    "half_a_vector": ({"position_x": np.ones(N)}, "position_x is there without"),
    "position_inf": (
        {"position_x": np.ones(N), "position_y": np.r_[np.ones(N - 1), np.inf]},
        "position must be finite: 1 of 40",
    ),
    "force_vector_nan": (
        {"force_vector_x": np.full(N, np.nan), "force_vector_y": np.ones(N)},
        "force_vector must be finite: 40",
    ),
}


class Payload:
    """Unpickling it makes a file."""

    def __reduce__(self):
        return os.mkdir, ("marker",)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npy_header(header):
    """Return a .npy file of 320 bytes of data with a header of one's own."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(8 * N)


def with_entry(name, data, **options):
    """Return a writer of a good .npz in which one entry has other bytes."""

    def make(path):
        with zipfile.ZipFile(path, "w", **options) as archive:
            for column, array in columns(**{name: None}).items():
                archive.writestr(f"{column}.npy", npy(array))
            archive.writestr(f"{name}.npy", data)

    return make


def arrays(**changes):
    return lambda path: write(path, **changes)


def good_then(edit):
    """Return a writer that edits the bytes of a good file."""

    def make(path):
        write(path)
        path.write_bytes(edit(path.read_bytes()))

    return make


def replaced(old, new):
    def edit(data):
        assert old in data
        return data.replace(old, new)

    return edit


def flipped(where):
    def edit(data):
        at = where(data) if callable(where) else where
        return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]

    return edit


def central(offset, value):
    """Return an edit of two bytes in the zip directory's first entry."""

    def edit(data):
        at = data.index(b"PK\x01\x02") + offset
        return data[:at] + struct.pack("<H", value) + data[at + 2 :]

    return edit


def declaring(size):
    """Return an edit after which the first entry claims to unpack to ``size`` bytes."""

    def edit(data):
        at = data.index(b"PK\x01\x02") + 24
        return data[:at] + struct.pack("<I", size) + data[at + 4 :]

    return edit


def entry_twice(path):
    write(path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("r.npy", npy(np.ones(N)))


def bomb(path):
    """Write 4.5 GiB of zeros, as the headers declare, in a few hundred bytes."""
    entries = [f"{name}.npy" for name in columns()]
    with zipfile.ZipFile(path, "w") as archive:
        for entry in entries:
            archive.writestr(entry, b"")
    data = path.read_bytes()
    parts = data.split(b"PK\x01\x02")
    parts[1:] = [part[:20] + struct.pack("<I", 3 * 2**28) + part[24:] for part in parts[1:]]
    path.write_bytes(b"PK\x01\x02".join(parts))


def too_many(path):
    one = np.ones(predictions.MAX_POINTS + 1, np.int8)
    write(path, **dict.fromkeys(columns(), one))


HEADER = "{{'descr': {}, 'fortran_order': False, 'shape': {}, }}\n"

NPZ = {
    "shape_short": (arrays(r=np.ones(3)), "r has shape (3,), expected (40,)"),
    "shape_2d": (arrays(r=np.ones((N, 1))), "r has shape (40, 1)"),
    "predictions_scalar": (
        arrays(force_predicted=np.float64(1)),
        "force_predicted has shape (), expected",
    ),
    "predictions_2d": (
        arrays(force_predicted=np.ones((N, 2))),
        "force_predicted has shape (40, 2)",
    ),
    "vector_3d": (arrays(position=np.ones((N, 3))), "position has shape (40, 3)"),
    "vector_1d": (arrays(force_vector=np.ones(N)), "force_vector has shape (40,)"),
    "ids_2d": (arrays(sequence_id=np.array([["a"]] * N)), "sequence_id has shape (40, 1)"),
    "ids_nan": (arrays(sequence_id=np.full(N, np.nan)), "sequence_id must be finite: 40"),
    "ids_bytes": (arrays(sequence_id=np.array([b"a"] * N)), "sequence_id has dtype |S1"),
    "units_2d": (arrays(units=np.array([["AU"]])), "units has shape (1, 1)"),
    "schema_text": (arrays(schema="one"), "schema is 'one', expected 1"),
    "seed_text": (arrays(seed="one"), "seed is 'one'"),
    "seed_bool": (arrays(seed=np.bool_(True)), "seed has dtype bool"),
    "model_object": (arrays(model=np.array(Payload())), "model is an object array"),
    "model_line_break": (arrays(model="a\nb"), "model must be 1 to 80 printable"),
    "dtype_complex": (arrays(r=np.ones(N, complex)), "r has dtype complex128"),
    "dtype_bool": (arrays(m1=np.ones(N, bool)), "m1 has dtype bool"),
    "dtype_text": (arrays(m2=np.full(N, "1.0")), "m2 has dtype <U3, expected numbers"),
    "object_numbers": (arrays(r=np.ones(N, object)), "r is an object array"),
    "object_payload": (arrays(r=np.array([Payload()] * N)), "r is an object array"),
    "object_in_a_record": (arrays(r=np.zeros(N, [("a", "O")])), "r is an object array"),
    "bare_pickle_entry": (with_entry("r", pickle.dumps(Payload())), "the magic string is not"),
    "empty_entry": (with_entry("r", b""), "EOF"),
    "npy_version_3": (with_entry("r", b"\x93NUMPY\x03\x00" + bytes(99)), "version (3, 0)"),
    "npy_header_cut": (with_entry("r", npy(np.ones(N))[:40]), "EOF"),
    "npy_data_cut": (with_entry("r", npy(np.ones(N))[:-8]), "320 bytes; it has 312"),
    "npy_data_left": (with_entry("r", npy(np.ones(N)) + b"x"), "320 bytes; it has 321"),
    "header_terabytes": (
        with_entry("r", npy_header(HEADER.format("'<f8'", "(1000000000000,)"))),
        "8000000000000 bytes; it has 320",
    ),
    "header_negative": (
        with_entry("r", npy_header(HEADER.format("'<f8'", "(-40,)"))),
        "declares shape (-40,)",
    ),
    "header_code": (
        with_entry("r", npy_header(HEADER.format("__import__('os').mkdir('marker')", "(40,)"))),
        "malformed node",
    ),
    "header_nested": (with_entry("r", npy_header("(" * 9000)), "not a complete .npz file"),
    "header_long": (with_entry("r", npy_header(" " * 20_000)), "is large and may not be safe"),
    "header_no_shape": (with_entry("r", npy_header("{'descr': '<f8'}\n")), "correct keys"),
    "header_object": (
        with_entry("r", npy_header(HEADER.format("'|O'", "(40,)"))),
        "r is an object array",
    ),
    "header_no_dtype": (
        with_entry("r", npy_header(HEADER.format("'<f9000'", "(40,)"))),
        "not a valid dtype descriptor",
    ),
    "zip_of_text": (with_entry("r", b"1,2,3", compression=zipfile.ZIP_LZMA), "EOF"),
    "zip_empty": (lambda path: zipfile.ZipFile(path, "w").close(), "it has none"),
    "zip_entry_twice": (entry_twice, "column r is there more than once"),
    "zip_bomb": (bomb, "4.5 GiB once unpacked, at most 4 GiB allowed"),
    "zip_larger_than_declared": (good_then(declaring(2**31)), "declares shape (40,), 320 bytes"),
    "zip_bad_crc": (good_then(flipped(lambda d: d.index(b"m1.npy") + 200)), "Bad CRC-32"),
    "zip_encrypted": (good_then(central(8, 1)), "encrypted"),
    "zip_method_99": (good_then(central(10, 99)), "not supported"),
    "zip_version_99": (good_then(central(6, 990)), "zip file version"),
    "zip_other_name": (good_then(flipped(lambda d: d.index(b"m1.npy"))), "differ"),
    "zip_cut_at_1": (good_then(lambda data: data[:1]), "not a complete .npz file"),
    "zip_cut_in_data": (good_then(lambda data: data[:700]), "not a complete .npz file"),
    "zip_cut_in_directory": (good_then(lambda data: data[:-60]), "not a complete .npz file"),
    "zip_start_missing": (good_then(lambda data: data[100:]), "not a complete .npz file"),
    "a_pickle": (lambda path: path.write_bytes(pickle.dumps(Payload())), "not a complete .npz"),
    "a_bare_npy": (lambda path: path.write_bytes(npy(np.ones(N))), "not a complete .npz file"),
    "a_csv": (lambda path: path.write_text("r,m1\n1,2\n"), "not a complete .npz file"),
    "empty": (lambda path: path.write_bytes(b""), "the file is empty"),
    "a_folder": (lambda path: path.mkdir(), "a folder or a device"),
    "a_pipe": (lambda path: os.mkfifo(path), "a folder or a device"),
    "too_many_points": (too_many, "more than 10,000,000 points"),
}


def with_sidecar(edit):
    """Return a writer of a good .npz whose sidecar is edited, its own checksum made anew."""

    def make(path):
        artefact.save_arrays(path, columns(), {"config": {}})
        record = artefact.load_record(artefact.sidecar(path))
        artefact.save_record(artefact.sidecar(path), edit(record))

    return make


def with_sidecar_text(text):
    def make(path):
        write(path)
        artefact.sidecar(path).write_text(text)

    return make


def recorded(**row):
    return with_sidecar(lambda record: {**record, "manifest": {"config": {"row": row}}})


SIDECAR = {
    "other_sha256": (with_sidecar(lambda r: {**r, "sha256": "0" * 64}), "sha256 mismatch"),
    "other_size": (with_sidecar(lambda r: {**r, "bytes": 7}), "but 7 were written"),
    "no_sha256": (with_sidecar(lambda r: {"bytes": r["bytes"]}), "sha256 mismatch"),
    "no_manifest": (with_sidecar(lambda r: {**r, "manifest": None}), "no manifest"),
    "edited": (with_sidecar_text('{"sha256": "0", "record_sha256": "1"}'), "checksum mismatch"),
    "no_json": (with_sidecar_text("{"), "not a complete record"),
    "a_list": (with_sidecar_text("[1]"), "not a complete record"),
    "nested": (with_sidecar_text("[" * 100_000), "not a complete record"),
    "a_pickle": (
        lambda path: (write(path), artefact.sidecar(path).write_bytes(pickle.dumps(Payload()))),
        "not a complete record",
    ),
    "a_folder": (lambda path: (write(path), artefact.sidecar(path).mkdir()), "p.npz.json"),
    "model_is_a_list": (recorded(model=["a"]), "model must be"),
    "model_is_long": (recorded(model="m" * 1000), "model must be"),
    "seed_is_text": (recorded(seed="one"), "seed is 'one'"),
    "labels_break_the_line": (recorded(labels="1\n2"), "labels must be"),
}
