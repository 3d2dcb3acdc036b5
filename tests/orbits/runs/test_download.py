"""What a page hands out: CSV that a spreadsheet does not calculate, and SVG where there is one."""

import base64
import csv
import io

import pytest

from orbits.runs import download
from orbits.runs.table import NOTHING, Column, Table, Value, interval, number


def read(table):
    return list(csv.reader(io.StringIO(download.to_csv(table))))


def test_a_table_is_a_column_of_texts_and_one_of_intervals():
    rows = [
        [Value("a, b", kind="name"), interval((-1.5, -2.0, -1.0)), number(3)],
        [Value('"c"', kind="name"), NOTHING, NOTHING],
    ]
    table = Table("T", [Column("name"), Column("x"), Column("n")], rows)
    assert read(table) == [
        ["name", "x", "x: interval or remark", "n"],
        ["a, b", "-1.5", "[-2, -1]", "3"],
        ['"c"', "", "", ""],
    ]
    head, _, body = download.csv_url(table).partition(",")
    assert head == "data:text/csv;charset=utf-8;base64"
    assert base64.b64decode(body).decode() == download.to_csv(table)


@pytest.mark.parametrize("text", ["-", "-2.5", "+3"])
def test_a_dash_and_a_number_are_no_formulas_either(text):
    assert read(Table("", [Column(text)], [[Value(text, kind="name")]])) == [[text]] * 2


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "@SUM(A1)", "-2+3"])
def test_a_text_from_a_file_is_no_formula_of_a_spreadsheet(text):
    table = Table("", [Column(text)], [[Value(text, kind="formula")], [Value(text)]])
    assert read(table) == [[f"'{text}"]] * 3


def test_a_drawing_is_handed_out_if_it_is_there_and_not_large(tmp_path, monkeypatch):
    png = tmp_path / "x.png"
    assert download.svg_url(png) == download.svg_url(b"png") == ""
    png.with_suffix(".svg").write_bytes(b"<svg/>")
    assert download.svg_url(png) == "data:image/svg+xml;base64,PHN2Zy8+"
    monkeypatch.setattr(download, "LARGEST_SVG", 5)
    assert download.svg_url(png) == ""


def test_names_of_files_have_no_separators():
    assert download.file_name("Who knows? ../<b>", "csv") == "who-knows-b.csv"
    assert download.file_name("·", "svg") == "table.svg"
