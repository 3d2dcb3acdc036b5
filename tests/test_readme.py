"""The READMEs: their commands, flags and configurations are there, and their Python runs."""

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from orbits import protocols
from orbits.dataset import generate

ROOT = Path(__file__).parents[1]
OURS = ("orbits", "attention", "worldmodel", "symreg", "benchmarks")
PAGES = [ROOT / "README.md", *(ROOT / package / "README.md" for package in OURS)]
TEXTS = {page: page.read_text("utf-8") for page in PAGES}


def blocks(language):
    """Return the examples in a language, each with its page."""
    return [
        (page, block)
        for page, text in TEXTS.items()
        for block in re.findall(rf"```{language}\n(.*?)```", text, re.S)
    ]


BLOCKS = [block for _, block in blocks("bash")]
LINES = "\n".join(BLOCKS).replace("\\\n", " ").splitlines()
COMMANDS = [shlex.split(x, comments=True)[2:] for x in LINES if x.startswith("python -m ")]


def subject(words):
    """Return the package and the command of a line, and the study of one that is run."""
    return tuple(words[: 3 if words[1] == "run" else 2])


SUBJECTS = sorted({subject(words) for words in COMMANDS if words[0] in OURS})


def test_every_package_has_commands_in_the_readme():
    assert {words[0] for words in SUBJECTS} == {*OURS}
    assert len(COMMANDS) > 30


def test_the_first_page_is_short():
    assert len(TEXTS[ROOT / "README.md"].split()) <= 1000


@pytest.mark.full
@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_examples_run_as_they_are_written(number, tmp_path, monkeypatch):
    generate(tmp_path / "data/orbits", protocols.get("identifiable"), {"train": 100})
    _, code = blocks("python")[number]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "example", "exec"), {"__name__": "__main__"})


@pytest.mark.full
@pytest.mark.parametrize("words", SUBJECTS, ids=" ".join)
def test_a_command_has_its_help_and_its_flags(words, monkeypatch, capsys):
    package, *rest = words
    monkeypatch.setattr(sys, "argv", [f"{package}/__main__.py", *rest, "--help"])
    code = 0
    try:  # in this process, which has imported most of what it needs
        importlib.import_module(f"{package}.__main__").main()
    except SystemExit as stopped:
        code = stopped.code
    assert not code
    said = capsys.readouterr().out
    lines = [each for each in COMMANDS if subject(each) == words]
    flags = {word.partition("=")[0] for each in lines for word in each if word.startswith("--")}
    known = set(re.findall(r"--[\w.-]+", said.replace("--[no-]", "--")))
    # Fields of classes that a configuration names are checked with that configuration.
    plain = {flag.replace("--no-", "--") for flag in flags if "." not in flag}
    assert sorted(plain - known) == []


def test_configurations_that_are_named_are_there():
    named = {word for words in COMMANDS for word in words if re.match(r"[\w/]+\.yaml$", word)}
    assert "worldmodel/configs/pretrain.yaml" in named
    assert [x for x in sorted(named) if not x.startswith("runs/") and not (ROOT / x).exists()] == []
