"""The console command: what each first word runs, and how commands are spelt to the user."""

import contextlib
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from orbits.runs.cli import called
from orrery.__main__ import COMMANDS, main

ROOT = Path(__file__).parents[2]
PUBLISHED = (
    *("data", "train", "finetune", "predict", "probe", "law", "bench", "attention", "doctor"),
)


def python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.full
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_loads_no_torch(command):
    code = """
import sys
import tomllib
from pathlib import Path
sys.argv = ["/bin/orrery", *sys.argv[1:]]
from orrery.__main__ import main
try:
    main()
finally:
    heavy = {"torch", "lightning", "sympy", "matplotlib", "pandas"} & {*sys.modules}
    print(sorted(heavy), file=sys.stderr)
"""
    ran = python(code, command, "--help")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == "[]\n"
    assert ran.stdout.startswith(f"usage: orrery {command}")


@pytest.mark.full
def test_the_trainers_help_has_the_command_as_it_is_typed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["/bin/orrery", "train", "--help-all"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("usage: orrery train [-c CONFIG] ")


def test_the_overview_names_every_command(capsys):
    assert {*PUBLISHED} <= COMMANDS.keys()
    main([])
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in COMMANDS)


@pytest.mark.parametrize("package", ["orbits", "attention", "worldmodel", "symreg", "benchmarks"])
def test_a_package_without_a_word_shows_its_help(package, capsys):
    main_of = importlib.import_module(f"{package}.__main__").main
    with contextlib.suppress(SystemExit):  # argparse leaves after help
        main_of([])
    said = capsys.readouterr()
    assert said.out.startswith(f"usage: python -m {package} ")
    assert said.err == ""


def test_an_unknown_word_is_one_line(refusal):
    assert "did you mean probe?" in refusal(main, ["prob"])


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("/usr/bin/orrery", "orrery train -c pretrain"),
        ("/site/orrery/__main__.py", "orrery train -c pretrain"),
        ("C:/Scripts/orrery.exe", "orrery train -c pretrain"),
        ("/site/worldmodel/__main__.py", "python -m worldmodel fit -c pretrain"),
        ("/usr/bin/pytest", "python -m worldmodel fit -c pretrain"),
    ],
)
def test_a_command_is_spelt_as_the_program_was_started(monkeypatch, program, expected):
    monkeypatch.setattr(sys, "argv", [program, "train"])
    assert called("worldmodel fit -c pretrain") == expected


def test_what_is_spelt_is_what_runs(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["orrery"])
    for name, (target, _) in COMMANDS.items():
        if name != "doctor":
            assert called(target) == f"orrery {name}"


@pytest.mark.parametrize("words", ["attention ls", "data ls", "law ls", "bench ls"])
def test_a_reader_who_leaves_early_is_no_error(words):
    code = f"""
import os, sys
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)
from orrery.__main__ import main
main({words.split()!r})
"""
    ran = python(code)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_lists_are_data_where_they_are_asked_to_be(capsys):
    main(["bench", "ls", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert "tiny" in found["newton"]["presets"]


DATA = (
    *("data ls", "data info", "law ls", "law score", "law fit", "law show", "law leaderboard"),
    *("bench ls", "bench report", "bench coverage", "bench run mqar", "doctor", "test"),
    *("bench site", "bench questions"),
    *("attention ls", pytest.param("probe", marks=pytest.mark.full)),
)


@pytest.mark.parametrize("words", DATA)
def test_a_command_whose_output_is_data_offers_it_to_programs(words, capsys):
    with contextlib.suppress(SystemExit):
        main([*words.split(), "--help"])
    page = capsys.readouterr().out
    assert "--json" in page
    assert "--quiet" in page


def test_the_readme_has_every_command_and_every_extra():
    page = (ROOT / "orrery" / "README.md").read_text("utf-8")
    told = dict(re.findall(r"^\| `orrery ([\w-]+)` \| `python -m ([^`]+)` \|", page, re.MULTILINE))
    assert told == {name: runs for name, (runs, _) in COMMANDS.items()}
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = re.findall(r"^\| `(\w+)` \| [^|]+\|$", page, re.MULTILINE)
    assert sorted(extras) == sorted(known["optional-dependencies"])
