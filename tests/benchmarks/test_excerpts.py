"""Markers: what they ask of a kept report stands under them; a wrong one is refused in a line."""

import pytest

from benchmarks import excerpts
from benchmarks.__main__ import main

REPORT = """# A study

## Runs, of one \\_ kind

Words.

| name | R2 of ln F | note |
| --- | --- | --- |
| a\\_b | 0.5 | x \\| y |
| c | 0.7 | `z` |

## Controls: others

| note | name | R2 of ln F |
| --- | --- | --- |
| w | d | 0.9 |
"""


@pytest.fixture
def kept(tmp_path):
    (tmp_path / "run" / "part").mkdir(parents=True)
    (tmp_path / "run" / "report.md").write_text(REPORT)
    (tmp_path / "run" / "part" / "report.md").write_text(REPORT)
    return tmp_path


def taken(body, kept):
    return excerpts.rows(excerpts.parsed(body), kept)


def test_a_table_is_taken_with_the_names_that_its_page_shows(kept):
    assert taken("run/part: Runs, of one _ kind", kept) == [
        ["name", "R2 of ln F", "note"],
        ["a b", "0.5", "x \\| y"],
        ["c", "0.7", "`z`"],
    ]


def test_columns_and_rows_of_several_tables_are_taken(kept):
    body = """run: Runs, of one _ kind + Controls: others
    | columns: R2 of ln F as R²; name | where: name = a_b; d | where: note = x | y"""
    with pytest.raises(ValueError, match="'y' in a marker: write columns"):
        taken(body, kept)
    body = body.replace(" | where: note = x | y", "")
    assert taken(body, kept) == [["R²", "name"], ["0.5", "a b"], ["0.9", "d"]]
    assert taken(f"{body} | where: note = w", kept) == [["R²", "name"], ["0.9", "d"]]
    twice = body.replace("Controls", "Runs, of one _ kind + Controls")
    assert taken(twice, kept) == taken(body, kept), "no row twice"
    other = body.replace("Controls", "run/part: Controls")
    assert taken(other, kept) == taken(body, kept)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("run", "'run' names no table"),
        ("away: Runs", "no kept report of 'away'"),
        ("run: Runs", "no table under 'Runs'"),
        ("run: A study", "no table under 'A study'"),
        ("run: Controls: others | columns: cost", "0 columns 'cost'"),
        ("run: Controls: others | where: name = e", r"no row .* has \[\('name', 'e'\)\]"),
        ("run: Controls: others | where: name", "'where: name' in a marker"),
    ],
)
def test_what_is_not_there_is_refused(body, message, kept):
    with pytest.raises(ValueError, match=message):
        taken(body, kept)


def test_a_document_is_filled_and_then_stays(kept):
    before = """Text.

<!-- table: run: Controls: others
| columns: name -->

| old |
| --- |
| 1 |

More, | not a table.
"""
    after = excerpts.filled(before, kept)
    assert after == before.replace("| old |", "| name |").replace("| 1 |", "| d |")
    assert excerpts.filled(after, kept) == after
    without = before.replace("| old |\n| --- |\n| 1 |\n\n", "")
    assert excerpts.filled(without, kept) == after, "a marker alone gets its table"


def test_the_command_writes_and_refuses_in_one_line(kept, tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(excerpts.filled, "__defaults__", (kept,))
    document = tmp_path / "page.md"
    document.write_text("<!-- table: run: Controls: others | columns: name -->\n\n")
    main(["excerpts", str(document)])
    assert document.read_text().endswith("| name |\n| --- |\n| d |\n\n")
    document.write_text("<!-- table: run: Controls -->\n")
    refusal(main, ["excerpts", str(document)])
