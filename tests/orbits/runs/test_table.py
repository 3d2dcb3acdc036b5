"""Tables: averages over seeds, and one table in the terminal, in Markdown, in HTML and as CSV."""

import pytest

from orbits.runs.result import Case, Metric, Result
from orbits.runs.table import NOTHING, Column, Table, Value, by_seed, interval, number, seed_table


def result(variant, seed, value, **setting):
    case = Case("s", "k", variant, seed=seed, setting=setting)
    return Result(case, metrics={"error": Metric(value, unit="AU", direction="lower")})


RESULTS = [result("a", seed, seed + 1.0, width=8) for seed in range(3)] + [result("b", 0, 4.0)]


def test_seeds_are_averaged_with_an_interval_and_few_are_counted():
    table = seed_table("Errors", RESULTS, ("variant", "width"), ("error", "never measured"))
    assert [column.heading for column in table.columns] == ["variant", "width", "error"]
    first, second = table.rows
    assert [value.text for value in first] == ["a", "8", "2.000"]
    assert first[2].detail == "[-0.484, 4.484]"  # Student's t with two degrees of freedom
    assert [value.text for value in second] == ["b", "", "4.000"]
    assert second[2].detail == "(one seed)"


def test_two_results_of_one_seed_are_refused():
    with pytest.raises(ValueError, match=r"error: two results of \('b',\), seed 0"):
        by_seed([*RESULTS, result("b", 0, 5.0)], "error", "variant")


def test_failed_results_have_no_part_in_a_table():
    failed = Result(Case("s", "k", "c", seed=0), status="failed", error="no")
    assert len(seed_table("t", [*RESULTS, failed], ("variant",), ("error",)).rows) == 2


HOSTILE = "<b>*x*</b>|`$"
TABLE = Table(
    "T*",
    [Column("who"), Column("n", "how many"), Column("m", "how many", wide=True)],
    [[Value(HOSTILE, kind="name"), interval((1.0, 0.5, 1.5)), NOTHING]],
    "About <it>.",
)


def test_markdown_shows_strings_as_they_are():
    text = TABLE.to_markdown()
    assert text.startswith("## T\\*\n\nAbout &lt;it&gt;.\n\n| who | n | m |\n| --- | --- | --- |\n")
    assert "| &lt;b&gt;\\*x\\*&lt;/b&gt;\\|\\`\\$ | 1 [0.5, 1.5] | - |" in text


def test_a_terminal_gets_no_wide_columns_and_no_control_characters():
    shown = Table("t", TABLE.columns, [[Value("a\x1b[2Jb", kind="name"), NOTHING, NOTHING]])
    _, heading, row, left_out = shown.to_text().splitlines()
    assert heading == "who"
    assert row == "a\\x1b[2Jb"
    assert left_out == "Columns not shown here: n, m."


def test_columns_that_share_a_note_are_explained_once():
    assert TABLE.notes == [("n, m", "how many")]


LENGTHS = [
    Column("name", "what it is called."),
    Column("empty"),
    Column("hidden", wide=True),
    Column("one", "a length in metres.", leaves=2),
    Column("two", "a length in metres.", leaves=1),
]
ROW = [
    Value("a name of several words that goes on", kind="name"),
    Value("-"),
    Value("3"),
    interval((1.0, 0.5, 1.5)),
    interval((2.0, 1.5, 2.5)),
]
NARROW = Table("Lengths", LENGTHS, [ROW], "Both are made up.")


def text_at(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    return NARROW.to_text()


@pytest.mark.parametrize(
    ("width", "shown", "details"),
    [(100, "name one two", 1), (42, "name one two", 2), (34, "name one", 2), (14, "name", None)],
)
def test_a_narrow_terminal_loses_details_and_then_columns(monkeypatch, width, shown, details):
    text = text_at(monkeypatch, width)
    title, heading, first, second = text.splitlines()[:4]
    assert title == "Lengths"
    assert heading.split() == shown.split()
    assert ("[0.5, 1.5]" in first) == (details == 1)
    assert ("[0.5, 1.5]" in second) == (details == 2)
    assert max(map(len, text.splitlines())) <= width
    said = " ".join(text.split())
    left_out = [c.heading for c in LENGTHS if c.heading not in heading.split()]
    left_out += [] if details else ["intervals and remarks"]
    assert f"ot shown here: {', '.join(left_out)}." in said.partition("Both are made up. ")[2]


def test_a_terminal_without_room_breaks_no_word_and_loses_the_last_columns(monkeypatch):
    named = [Value("linear autoregression", kind="name"), Value("control", kind="name")]
    numbers = [number(value) for value in (0.5, 0.25, 0.125)]
    headings = ("variant", "arm", "agreement", "slope", "tokens_changed")
    made = Table("", [Column(heading) for heading in headings], [[*named, *numbers]])
    monkeypatch.setenv("COLUMNS", "45")
    heading, first, second, *rest = made.to_text().splitlines()
    assert heading.split() == list(headings[:4])
    assert first.split() == ["linear", "control", "0.5", "0.25"]
    assert second.split() == ["autoregression"]
    assert "Columns not shown here: tokens_changed" in " ".join(rest)


def test_a_training_that_diverged_is_said_and_not_averaged():
    results = [result("a", seed, value) for seed, value in enumerate((1.0, 2.0, float("inf")))]
    ((_, box),) = seed_table("", results, ["variant"], ["error"]).rows
    assert (box.text, box.detail) == ("not finite", "(in 1 of 3)")
