"""What is wrong with an entry or a mixer's file is one line, and stops nothing else."""

import re
import sys

import pytest

import attention
from attention import catalogue, linear
from attention.__main__ import main

NAMES = attention.names("all")
TEXTS = {"source": "nobody", "formula": "none", "about": "Nothing."}


def test_nothing_is_broken():
    assert catalogue.BROKEN == {}
    assert linear.broken() == {}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"phi": "tanh"}, "unknown phi 'tanh' of bad_one; choose from exp"),
        ({"ph": "exp"}, "got an unexpected keyword argument 'ph'"),
        ({"p": -1.0}, "p of bad_one must be a positive number, got -1.0"),
        ({"about": ""}, "about of bad_one is missing"),
        ({"source": ""}, "source of bad_one is missing"),
    ],
)
def test_a_bad_entry_is_named_with_its_field(fields, message, monkeypatch, capsys):
    monkeypatch.setattr(catalogue, "BROKEN", {})
    assert catalogue._entry("bad_one", **{**TEXTS, **fields}) is None
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        attention.build("bad_one", n_head=1, head_dim=4)
    said = str(error.value)
    assert said.startswith("attention/catalogue.py: entry 'bad_one': ")
    assert len(said.splitlines()) == 1
    check_others(capsys, said)


MIXER = """
from attention.linear.mixer import Mixer
class Bad(Mixer):
    name, source, about, kept = {texts}
    def _mix(self, x, cache, chunk):
        return x
MIXER = Bad
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MIXER.format(texts="'bad_one', 'nobody', None, 'H'"), "Bad lacks about, a text"),
        (MIXER.format(texts="'bad_one', 'nobody', 'Nothing.', 1"), "Bad lacks kept, a text"),
        (MIXER.format(texts="'other', '', '', ''"), "names its mixer 'other'; a file is called"),
        ("MIXER = 3", "MIXER must be a subclass of Mixer, got 3"),
        ("MIXER = ", "invalid syntax"),
        ("import not_there_at_all", "No module named 'not_there_at_all'"),
    ],
)
def test_a_bad_mixer_is_named_with_its_fault(text, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "bad_one.py").write_text(text, "utf-8")
    monkeypatch.setattr(linear, "__path__", [*linear.__path__, str(tmp_path)])
    linear._catalogue.cache_clear()
    try:
        for call in (linear.get, attention.get):
            with pytest.raises(ValueError, match=re.escape(message)) as error:
                call("bad_one")
            assert str(error.value).startswith("attention/linear/bad_one.py: ")
        check_others(capsys, str(error.value))
    finally:
        monkeypatch.undo()
        linear._catalogue.cache_clear()
        sys.modules.pop("attention.linear.bad_one", None)


def check_others(capsys, said):
    """Check that all others are there, and that the list says this of the bad one."""
    assert attention.names("all") == NAMES
    main(["ls"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "bad_one" in line] == [f"left out: {said}"]
    assert {line.split()[0] for line in lines if line} >= set(NAMES)
