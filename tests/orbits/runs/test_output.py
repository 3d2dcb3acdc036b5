"""What commands print for a program: one JSON object, or what matters alone."""

import json

import pytest

from orbits.runs import flags, output
from orbits.runs.cli import OneLineParser
from tests.orbits.runs.tossing import STUDY


def said(capsys, *arguments):
    parser = OneLineParser()
    output.offer(parser, "the name", full=True)
    asked = parser.parse_args(arguments)
    with output.on_the_way(asked):
        print("on the way")
    output.say(asked, lambda: "a text", lambda: {"name": "a"}, lambda: "")
    return capsys.readouterr().out


def test_a_program_gets_what_it_asks_for_and_nothing_else(capsys):
    assert said(capsys) == said(capsys, "--full") == "on the way\na text\n"
    assert json.loads(said(capsys, "--json")) == {"name": "a"}
    assert said(capsys, "--quiet") == ""
    with pytest.raises(SystemExit):
        said(capsys, "--json", "--quiet")


def run(capsys, out, *arguments):
    arguments = ("--preset", "tiny", "--executor", "here", "--out", str(out), *arguments)
    chosen = flags.parse_study(STUDY, arguments, "run tossing", reports=True)
    if flags.execute(STUDY, chosen) is not None:
        flags.say_report(chosen, STUDY, out)
    return capsys.readouterr().out


def test_a_dry_run_is_data_too(tmp_path, capsys):
    found = json.loads(run(capsys, tmp_path / "out", "--dry-run", "--json"))
    assert (found["cells"], found["finished"], found["cpu_s"]) == (2, 0, 0)
    assert found["kinds"]["tossing, toss"]["never_measured"] == 2
    assert run(capsys, tmp_path / "out", "--dry-run", "--quiet") == "0.0 CPU minutes\n"


@pytest.mark.full  # draws
def test_a_run_prints_its_results_or_its_page_alone(tmp_path, capsys):
    out = tmp_path / "out"
    found = json.loads(run(capsys, out, "--json"))
    assert [x["variant"] for x in found["results"]] == ["penny", "dime"]
    assert found["report"] == str(out / "report.html")
    assert run(capsys, out, "--quiet", "--reuse", str(out)) == f"{out / 'report.html'}\n"
    assert "cells are taken from" in run(capsys, out, "--reuse", str(out), "--full")


def test_json_has_no_number_for_what_is_not_finite():
    found = output.as_json({"a": (1.0, float("-inf"), [float("nan")]), "b": "Infinity"})
    assert found == '{"a": [1.0, null, [null]], "b": "Infinity"}'
