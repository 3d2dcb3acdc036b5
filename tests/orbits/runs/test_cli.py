"""What a command line says of a word that it does not know."""

import sys

import pytest

from orbits.runs.cli import OneLineParser, one_line_errors


def parse(*words):
    parser = OneLineParser()
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    fit = commands.add_parser("fit")
    fit.add_argument("--engine")
    fit.add_argument("--seed", choices=["first", "last"])
    commands.add_parser("score").add_argument("--engines-of")
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit --engin operon", "unrecognized arguments: --engin operon; did you mean --engine?"),
        ("fit --atention x", "unrecognized arguments: --atention x"),
        ("fit --jobs 2", "unrecognized arguments: --jobs 2; use --workers"),
        ("fti", "(choose from 'fit', 'score'); did you mean fit?"),
        ("fit --seed frist", "(choose from 'first', 'last'); did you mean first?"),
    ],
)
def test_a_word_that_is_near_a_known_one_is_answered_with_it(words, said, refusal):
    assert refusal(parse, *words.split()).endswith(said)


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
