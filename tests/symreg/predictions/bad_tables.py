"""Every way to break a .csv or a .parquet prediction file, with what is said of it."""

import json
import pickle

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tests.symreg.predictions.bad_archives import (
    N,
    Payload,
    columns,
    flipped,
    good_then,
    replaced,
    table,
    too_many,
)


def text(edit):
    """Return a writer that edits the text of a good .csv."""
    return good_then(lambda data: edit(data.decode()).encode())


def cell(value, name="r", row=3):
    """Return a writer of a good .csv with one field changed."""

    def edit(content):
        lines = [line.split(",") for line in content.splitlines()]
        lines[1 + row][lines[0].index(name)] = value
        return "\n".join(map(",".join, lines)) + "\n"

    return text(edit)


CSV = {
    "word": (cell("one"), "r is not a number in row 3: 'one'"),
    "shell_formula": (cell("=cmd|'/c mkdir marker'!A0"), "r is not a number"),
    "code": (cell("__import__('os').mkdir('marker')"), "r is not a number"),
    "hexadecimal": (cell("0x10"), "'0x10'"),
    "thousands": (cell('"1,000"'), "'1,000'"),
    "underscore": (cell("1_000"), "r is not a number in row 3: '1_000'"),
    "arabic_digits": (cell("١٢"), "r is not a number in row 3: '١٢'"),
    "decimal_comma": (cell("1,5"), "row 3 has 7 fields, the header has 6"),
    "nul": (cell("\0"), "r is not a number"),
    "long_word": (cell("x" * 10_000), "r is not a number in row 3"),
    "huge_field": (cell("1" * 200_000), "field larger than field limit"),
    "overflow": (cell("1e999"), "r must be positive and finite: 1 of 40 are not, first inf"),
    "empty_field": (cell(""), "r must be positive and finite: 1 of 40 are not, first nan"),
    "minus_zero": (cell("-0.0", "m1"), "m1 must be positive"),
    "id_of_200": (cell("s" * 200, "sequence_id"), "sequence_id has 200 characters"),
    "quote_never_closed": (cell('"1'), "not a complete .csv file"),
    "quote_then_text": (cell('"1"2'), "not a complete .csv file"),
    "row_short": (text(lambda t: t.rsplit(",", 1)[0]), "row 39 has 5 fields"),
    "row_long": (text(lambda t: t.strip() + ",1\n"), "row 39 has 7 fields"),
    "row_cut": (good_then(lambda data: data[:-60]), "fields, the header has 6"),
    "column_twice": (text(replaced("m2", "m1")), "no column m2"),
    "known_twice": (text(replaced(",force,", ",r,")), "column r is there more than once"),
    "semicolons": (text(replaced(",", ";")), "; columns are separated by commas"),
    "no_header": (text(lambda t: t.split("\n", 1)[1]), "no column sequence_id, r"),
    "header_alone": (text(lambda t: t.split("\n", 1)[0]), "no points"),
    "header_in_capitals": (text(lambda t: t.replace("m1", "M1")), "no column m1"),
    "blank_lines": (lambda path: path.write_text("\n" * 99), "it has none"),
    "wide_header": (lambda path: path.write_text("x," * 100_000), "no column sequence_id"),
    "escapes_in_the_header": (text(replaced("m1", "\x1b[2Jm")), "no column m1"),
    "utf_16": (good_then(lambda data: data.decode().encode("utf-16")), "not a text file in UTF-8"),
    "latin_1": (text(replaced("m1", "m1,\u00e9")), "row 0 has 6 fields, the header has 7"),
    "not_utf_8": (good_then(replaced(b"m1", b"\xe91")), "not a text file in UTF-8"),
    "an_npz": (lambda path: np.savez(path.open("wb"), **columns()), "not a text file"),
    "a_pickle": (lambda path: path.write_bytes(pickle.dumps(Payload())), "not a text file"),
    "json": (lambda path: path.write_text(json.dumps({"r": [1, 2]})), "no column sequence_id"),
    "empty": (lambda path: path.write_bytes(b""), "the file is empty"),
    "a_folder": (lambda path: path.mkdir(), "a folder or a device"),
}


def typed(**changes):
    """Return a writer of a .parquet with arrow arrays in place of some columns."""
    return lambda path: parquet.write_table(pa.table({**table(columns()), **changes}), path)


def repeated_column(path):
    good = pa.table(columns())
    parquet.write_table(good.append_column("r", good["m1"]), path)


def repeated_text(path):
    """Write one text of 10 MB, which is repeated in each row at no cost."""
    model = pa.DictionaryArray.from_arrays(np.zeros(N, np.int32), ["m" * 10**7])
    parquet.write_table(pa.table({**columns(), "model": model}), path)


def extension_type(path):
    """Write a column whose metadata asks the reader to unpickle its type."""
    metadata = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Payload()),
    }
    fields = [pa.field(name, pa.float64()) for name in columns(r=None)]
    schema = pa.schema([*fields, pa.field("r", pa.binary(), metadata=metadata)])
    values = [np.asarray(array, float) for array in columns(r=None).values()]
    parquet.write_table(pa.table([*values, [b"1"] * N], schema=schema), path)


def footer(edit):
    """Return a writer that edits the last eight bytes: the footer's length and the magic."""
    return good_then(lambda data: data[:-8] + edit(data[-8:-4], data[-4:]))


NUMBERS = list(range(1, N + 1))

PARQUET = {
    "text_for_a_number": (typed(r=["1.0"] * N), "r has type string, expected numbers"),
    "bool": (typed(m1=[True] * N), "m1 has type bool"),
    "list": (typed(r=[[1.0]] * N), "r has type list"),
    "binary": (typed(r=[b"1"] * N), "r has type binary"),
    "null": (typed(r=pa.nulls(N)), "r has type null"),
    "decimal": (typed(r=pa.array(NUMBERS, pa.decimal128(9, 2))), "r has type decimal128"),
    "timestamp": (typed(r=pa.array(NUMBERS, pa.timestamp("s"))), "r has type timestamp"),
    "category": (typed(r=pa.array(["1"] * N).dictionary_encode()), "r has type string"),
    "a_null": (typed(r=[None, *NUMBERS[1:]]), "r must be positive and finite: 1 of 40"),
    "a_null_float": (typed(m1=[None, *map(float, NUMBERS[1:])]), "m1 must be positive"),
    "null_in_ids": (typed(sequence_id=[None, *"a" * (N - 1)]), "sequence_id is empty in 1 of 40"),
    "null_in_number_ids": (typed(sequence_id=[None, *NUMBERS[1:]]), "sequence_id must be finite"),
    "null_in_model": (typed(model=[*"a" * (N - 1), None]), "model is empty in 1 of 40"),
    "binary_ids": (typed(sequence_id=[b"a"] * N), "expected numbers or text"),
    "long_ids": (typed(sequence_id=["s" * 200] * N), "sequence_id has 200 characters"),
    "schema_text": (typed(schema=["1"] * N), "schema has type string"),
    "vector_as_list": (typed(position=[[1.0, 2.0]] * N), "position has type list"),
    "vector_as_column": (typed(position=[1.0] * N), "position has shape (40,)"),
    "column_twice": (repeated_column, "column r is there more than once"),
    "text_of_10_mb": (repeated_text, "model has 10000000 characters"),
    "pickled_extension_type": (extension_type, "r has type binary"),
    "too_many_points": (too_many, "more than 10,000,000 points"),
    "no_columns": (lambda p: parquet.write_table(pa.table({}), p), "it has none"),
    "cut_in_data": (good_then(lambda data: data[:500]), "not a complete .parquet file"),
    "cut_by_1": (good_then(lambda data: data[:-1]), "not a complete .parquet file"),
    "cut_in_the_middle": (good_then(lambda d: d[:400] + d[500:]), "not a complete .parquet"),
    "start_missing": (good_then(lambda data: data[100:]), "not a complete .parquet file"),
    "page_damaged": (good_then(flipped(200)), "not a complete .parquet file"),
    "magic": (footer(lambda length, _: length + b"PAR9"), "not a complete .parquet file"),
    "encrypted": (footer(lambda length, _: length + b"PARE"), "not a complete .parquet file"),
    "footer_of_4_gb": (footer(lambda _, m: b"\xff\xff\xff\xff" + m), "not a complete .parquet"),
    "only_magic": (lambda path: path.write_bytes(b"PAR1PAR1"), "not a complete .parquet file"),
    "zeros": (lambda path: path.write_bytes(bytes(4096)), "not a complete .parquet file"),
    "a_csv": (lambda path: path.write_text("r,m1\n1,2\n"), "not a complete .parquet file"),
    "an_npz": (lambda path: np.savez(path.open("wb"), **columns()), "not a complete .parquet"),
    "a_pickle": (lambda path: path.write_bytes(pickle.dumps(Payload())), "not a complete .parquet"),
    "empty": (lambda path: path.write_bytes(b""), "the file is empty"),
    "a_folder": (lambda path: path.mkdir(), "a folder or a device"),
}
