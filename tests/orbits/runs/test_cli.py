"""What a command line says of a word that it does not know."""

import subprocess
import sys
from pathlib import Path

import pytest

from orbits.runs.cli import OneLineParser, one_line_errors


def parse(*words):
    parser = OneLineParser()
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    fit = commands.add_parser("fit")
    fit.add_argument("--engine")
    fit.add_argument("--width", type=float)
    fit.add_argument("--seed", choices=["first", "last"])
    commands.add_parser("score").add_argument("--engines-of")
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit --engin operon", "unrecognized arguments: --engin operon; did you mean --engine?"),
        ("fit --atention x", "unrecognized arguments: --atention x"),
        ("fit --jobs 2", "unrecognized arguments: --jobs 2; use --workers"),
        ("fit --width wide", "argument --width: must be a finite number, got 'wide'"),
        ("fti", "(choose from 'fit', 'score'); did you mean fit?"),
        ("sco", "(choose from 'fit', 'score'); did you mean score?"),
        ("fit --seed frist", "(choose from 'first', 'last'); did you mean first?"),
    ],
)
def test_a_word_that_is_near_a_known_one_is_answered_with_it(words, said, refusal):
    assert refusal(parse, *words.split()).endswith(said)


def listing(*words):
    parser = OneLineParser()
    several = parser.add_subparsers().add_parser("several")
    several.add_argument("out")
    several.add_argument("folders", nargs="*", type=Path)
    several.add_argument("--only", action="store_true")
    return parser.parse_args(["several", *words])


@pytest.mark.parametrize("words", ["a b c --only", "a --only b c", "--only a b c", "a b --only c"])
def test_a_list_may_stand_on_both_sides_of_a_flag(words):
    given = listing(*words.split())
    assert (given.out, given.folders, given.only) == ("a", [Path("b"), Path("c")], True)


def test_a_misspelt_flag_before_a_list_is_refused(refusal):
    said = refusal(listing, "a", "--olny", "b")
    assert said.endswith("unrecognized arguments: --olny b; did you mean --only?")


def interrupted_in_a_library():
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        sys.exit(1)


@pytest.mark.parametrize("resumes", [True, False])
def test_an_interruption_that_a_library_makes_an_exit_is_one(resumes, capsys):
    with pytest.raises(SystemExit) as ended, one_line_errors(resumes=resumes):
        interrupted_in_a_library()
    assert ended.value.code == 130
    assert capsys.readouterr().err.startswith("stopped; run" if resumes else "stopped\n")


def test_an_exit_stays_as_it_is():
    with pytest.raises(SystemExit) as ended, one_line_errors():
        sys.exit(3)
    assert ended.value.code == 3


@pytest.mark.full
@pytest.mark.parametrize("package", ["orrery", "orbits", "worldmodel", "symreg", "benchmarks"])
def test_ctrl_c_during_imports_is_one_line(package):
    code = f"""
import runpy, sys
class Press:
    def find_spec(self, name, *_):
        if name == "orbits.runs.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Press())
runpy.run_module({package!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")
