"""The first screen: verdict, a table of at most seven columns and a figure, each shown once."""

import io

import pytest
from PIL import Image

from orbits.runs.first_screen import (
    MOST_COLUMNS,
    MOST_ROWS,
    brief,
    first_screen,
    narrowed,
    shortened,
)
from orbits.runs.page import Picture, Report, Section
from orbits.runs.table import Column, Table, Value, number


def table(columns, rows=2, title="T", **more):
    heads = [Column(f"c{i}", wide=i == 1) for i in range(columns)]
    body = [[Value(f"{i}{row}") for i in range(columns)] for row in range(rows)]
    return Table(title, heads, body, **more)


FIRST, SECOND = Picture("one", [b"1"]), Picture("two", [b"2"])


def test_what_stands_above_is_not_repeated_below():
    words = Table.of_text("W", ["what"], [["no number"]])
    narrow = table(3)
    sections = [
        Section("W", [words]),
        Section("T", [narrow, table(2)], pictures=[FIRST, SECOND]),
    ]
    first = first_screen(Report("?", "", ["yes", "also"], sections))
    assert (first.verdict, first.sentences) == ("yes", ["also"])
    assert (first.table, first.picture) == (narrow, FIRST)
    below = first.sections[1]
    assert [len(x.columns) for x in below.tables] == [2]
    assert below.pictures == [SECOND]
    only = first_screen(Report("?", sections=[Section("T", [narrow], pictures=[FIRST])]))
    assert (only.verdict, only.sections) == ("", [])


def test_a_table_that_its_caption_completes_stands_once():
    columns = [Column(name) for name in ("who", *"abcdefg")]
    body = [[Value(who, kind="name"), Value("1", kind="name"), *[number(2.0)] * 6] for who in "xy"]
    first = first_screen(Report("R", sections=[Section("T", [Table("T", columns, body)])]))
    assert "In every row here: a 1" in first.table.caption
    assert len(first.whole.columns) == 8
    assert not first.sections


def test_a_wide_table_is_narrowed_above_and_whole_below():
    wide = table(12, title="")
    first = first_screen(Report("?", sections=[Section("S", [wide])]))
    assert len(first.table.columns) == MOST_COLUMNS
    assert first.table.title == "S"
    assert first.sections[0].tables == [wide]


def test_columns_that_are_alike_go_into_the_caption_before_any_other_goes():
    heads = [Column("seeds"), *(Column(f"c{i}", wide=i == 0) for i in range(8)), Column("none")]
    body = [[Value("3"), *(Value(f"{i}{row}") for i in range(8)), Value("-")] for row in range(2)]
    shown = narrowed(Table("T", heads, body))
    assert [x.heading for x in shown.columns] == [f"c{i}" for i in range(1, 8)]
    assert shown.rows[1] == body[1][2:9]
    assert shown.caption == "In every row here: seeds 3. The other columns are below."
    assert narrowed(table(7, rows=1)) == table(7, rows=1)


def test_a_name_that_all_rows_have_goes_into_the_caption_if_others_tell_rows_apart():
    heads = [Column("model"), Column("mode"), Column("ms")]
    body = [
        [Value(f"m{row}", kind="name"), Value("training", kind="name"), number(1)]
        for row in range(2)
    ]
    shown = narrowed(Table("T", heads, body))
    assert [x.heading for x in shown.columns] == ["model", "ms"], "a number stays"
    assert shown.caption == "In every row here: mode training."
    alone = Table("T", heads[1:], [row[1:] for row in body])
    assert narrowed(alone) == alone


def models(*names, **more):
    """Return a table with a row for each name, numbered in the second column."""
    body = [[Value(name, kind="name"), Value(str(place))] for place, name in enumerate(names)]
    return Table("T", [Column("model"), Column("exam")], body, **more)


def test_a_long_table_shows_each_model_once_and_what_the_verdict_names():
    names = [*"abc", *"abc", *(f"control {i}" for i in range(20)), "linear filter", "log-linear"]
    shown = shortened(models(*names, caption="C."), "a is as good as log-linear.")
    assert [row[0].text for row in shown.rows] == [*"abc", *names[6:14], "log-linear"]
    assert shown.rows[0][1].text == "0", "the first of a model"
    assert shown.caption == "C. 12 of 28 rows; all of them below."
    few = shortened(models(*"abab" * 5))
    assert [row[1].text for row in few.rows] == [str(i) for i in range(MOST_ROWS)]


def test_a_study_may_choose_the_rows_that_come_first():
    chosen = models(*"ab" * 10, front=[17, 2, 4])
    assert [row[1].text for row in shortened(chosen).rows] == ["2", "4", "17"]
    short = models(*"ab", front=[1])
    assert shortened(short) == short


def test_a_shortened_table_is_whole_and_folded_below():
    long = models(*"ab" * 10)
    first = first_screen(Report("?", sections=[Section("S", [long])]))
    assert (len(first.table.rows), first.whole) == (MOST_ROWS, long)
    (below,) = first.sections[0].tables
    assert below.folded
    assert below.rows == long.rows


@pytest.mark.parametrize("size", [(726, 500), (726, 2000), (902, 500)], ids=str)
def test_a_large_figure_stands_below_its_table(size):
    file = io.BytesIO()
    Image.new("RGB", size).save(file, "PNG")
    pictures = [Picture("one", [file.getvalue()])]
    first = first_screen(Report("?", sections=[Section("T", [table(3)], pictures=pictures)]))
    assert first.is_stacked == (size != (726, 500))


def test_a_figure_that_cannot_be_read_stands_beside():
    assert not first_screen(Report("?", sections=[Section("T", pictures=[FIRST])])).is_stacked
    assert not first_screen(Report("?")).is_stacked


def test_folded_parts_are_no_headline():
    folded = [Section("a", [table(2)], folded=True), Section("b", [table(2, folded=True)])]
    first = first_screen(Report("?", sections=folded))
    assert first.table is None
    assert len(first.sections) == 2


def test_a_terminal_shows_the_first_screen_in_brief():
    sentences = [f"sentence {i}" for i in range(8)]
    report = Report("?", sentences=sentences, sections=[Section("T", [table(3), table(2, rows=9)])])
    said = brief(report, ["cell x: no GPU"])
    assert said.startswith("?\n- sentence 0\n")
    assert "- sentence 5\n- and 2 more\n" in said
    assert "02" not in said, "the second table"
    assert said.endswith("Cells without a result\ncell x: no GPU\n")
    assert brief(Report("?")) == "?\n"
