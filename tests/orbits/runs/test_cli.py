"""What a command line says of a word that it does not know."""

import pytest

from orbits.runs.cli import OneLineParser


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
