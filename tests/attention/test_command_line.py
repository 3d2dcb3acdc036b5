import json
import runpy
import subprocess
import sys

import pytest

import attention
from attention import api
from attention.__main__ import main
from attention.listing import COLUMNS, MIXERS, takes, unknown


def test_every_variant_is_listed_with_its_properties(capsys, added):
    main(["ls"])
    variants, mixers = capsys.readouterr().out.split("\n\n")
    header, *lines = variants.splitlines()
    assert [line.split()[0] for line in lines] == list(attention.names())
    assert all(column in header for column in COLUMNS)
    for line, name in zip(lines, attention.names(), strict=True):
        spec = attention.get(name)
        assert spec.formula in line
        assert spec.source in line
        assert spec.row_sum in line
        assert line.endswith(spec.about)
        assert all(argument in line for argument in (*spec.arguments, *spec.learned))
    assert any("train LSSA first" in line for line in lines), "who picks LSSAR reads its warning"
    assert "gates" in next(line for line in lines if line.startswith("zeros_sm"))
    header, *lines = mixers.splitlines()
    assert all(column in header for column in MIXERS)
    for line, name in zip(lines, attention.linear.names(), strict=True):
        mixer = attention.linear.get(name)
        assert line.startswith(f"{name} ")
        assert mixer.about in line
        assert mixer.source in line
        assert all(argument in line for argument in mixer.arguments)


def test_json_has_every_variant_and_mixer(capsys, added):
    main(["ls", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert tuple(found["variants"]) == attention.names()
    assert tuple(found["mixers"]) == attention.linear.names()
    assert found["variants"]["lssar"]["arguments"] == list(attention.get("lssar").arguments)
    assert found["broken"] == []


def test_markdown_is_a_table(capsys, added):
    main(["ls", "--markdown"])
    page, _, differing = capsys.readouterr().out.partition("## Where they deviate")
    parts = page.split("# Linear mixers")
    assert "- rwkv7: Projections start" in differing
    for part, columns, names in zip(
        parts, (COLUMNS, MIXERS), (attention.names(), attention.linear.names()), strict=True
    ):
        lines = [line for line in part.splitlines() if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        assert cells[0] == list(columns)
        assert set(cells[1]) == {"---"}
        assert [row[0] for row in cells[2:]] == list(names)
        assert all(len(row) == len(columns) for row in cells)
        assert all(all(row) for row in cells if row[0] != added.name)


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["ls", "--html"],
        ["ls", "softmax"],
        ["aot", "--only", "lsar"],
        ["aot", "--jobs", "0"],
        ["tune", "--only", "lsar"],
    ],
    ids=str,
)
def test_a_bad_command_is_one_line_and_exit_2(arguments, refusal):
    assert refusal(main, arguments).startswith("error: ")


def test_it_runs_as_a_module(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["attention", "ls"])
    monkeypatch.delitem(sys.modules, "attention.__main__", raising=False)
    runpy.run_module("attention", run_name="__main__")
    assert capsys.readouterr().out.startswith("name ")


@pytest.mark.parametrize("words", [[], ["ls"], ["aot", "--help"]], ids=" ".join)
def test_the_list_and_help_need_no_torch(words):
    code = f"""import sys
from attention.__main__ import main
try:
    main({words})
finally:
    assert "torch" not in sys.modules"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_terminal_gets_names_arguments_and_a_sentence_in_its_width(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "90")
    main(["ls"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 90
    assert {"softmax", "lssar", "zeros"} <= {line.split()[0] for line in lines if line}
    assert lines[-1].startswith("ls --markdown or --json has formulas")


@pytest.mark.parametrize(
    ("started", "typed"),
    [
        ("/usr/bin/orrery", "orrery attention"),
        ("/src/orrery/__main__.py", "orrery attention"),
        ("/src/attention/__main__.py", "python -m attention"),
    ],
)
def test_a_command_is_named_as_it_was_typed(started, typed, monkeypatch):
    monkeypatch.setattr(sys, "argv", [started])
    assert f"`{typed} ls` lists all" in unknown("softmx", ["softmax"])


def test_arguments_are_known_without_torch():
    assert {name: takes(name) for name in api.names("all")} == {
        name: api._takes(name) for name in api.names("all")
    }
