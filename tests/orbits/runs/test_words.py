"""The words on a page: what columns hold, metrics, and those of the glossary that it uses."""

from orbits.runs.result import Quantity
from orbits.runs.table import Column, Table
from orbits.runs.words import Word, Words, glossary_of

METRICS = {"loss": Quantity("lower", "nats", "a loss")}


def test_headings_lead_to_their_notes_and_to_metrics():
    note = "in metres."
    columns = [Column("one", note), Column("two", note), Column("loss@4x"), Column("other")]
    words = Words([Table("", columns, [])], METRICS, [Word("arm", "how it came about")])
    assert [word.name for word in words.entries] == ["one, two", "loss", "arm"]
    assert words.entries[1].meaning == "a loss (nats, lower is better)"
    assert [words.anchor(x) for x in columns] == ["word-1", "word-1", "word-2", ""]


def test_the_glossary_gives_the_words_that_are_used(tmp_path):
    path = tmp_path / "GLOSSARY.md"
    text = "| word | meaning |\n|---|---|\n| arm | a |\n| box, training box | b |\n| sink | c |\n"
    path.write_text(text)
    assert glossary_of("Of both arms in the training box; sinking.", path) == [
        Word("arm", "a"),
        Word("box, training box", "b"),
    ]
    assert glossary_of("arm", tmp_path / "none.md") == []
