"""``python -m symreg``: from prediction files to formulas, verdicts and a leaderboard.

The first word chooses what is imported; help needs none of it.
"""

from __future__ import annotations

from orbits.runs import stopped  # noqa: F401  (first: it answers Ctrl-C from here on)

# isort: split
import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from orbits.runs import output
from orbits.runs.cli import OneLineParser, called, one_line_errors, taken

PROG = called("symreg")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one subcommand; bad input is one line on stderr and exit code 2, a failed search 1."""
    words = taken(arguments)
    with one_line_errors(resumes=words[:1] == ["leaderboard"]):
        _run(words)


def _run(words: list[str]) -> None:
    try:
        if words[:1] == ["leaderboard"]:  # its flags are those of its settings
            return _command("leaderboard").main(words[1:], f"{PROG} leaderboard")
        options = _parser().parse_args(words)
        _command(options.command).main(options)
    except RuntimeError as error:  # an engine that is known and cannot run here
        raise ValueError(error) from None


def _command(name: str) -> ModuleType:
    return importlib.import_module(f"symreg.commands.{name.replace('-', '_')}")


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=PROG, description="Search force predictions for a formula and compare it with a law."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("leaderboard", help="rank prediction files beside their controls")

    fit = commands.add_parser("fit", help="search for a formula and score it")
    fit.add_argument("predictions", type=Path, help=".npz, .csv or .parquet prediction file")
    fit.add_argument("--law", default="newton", help="the true law (default newton)")
    fit.add_argument("--engine", default="auto", help="auto, or a name shown by ls")
    fit.add_argument(
        "--engine-args", default="{}", metavar="JSON", help="such as '{\"generations\": 100}'"
    )
    fit.add_argument("--points", type=int, default=1000, help="points per search (default 1000)")
    fit.add_argument("--rule", help="how a formula is chosen (default: the engine's own)")
    fit.add_argument("--seed", type=int, default=0, help="draws the points and seeds the search")
    fit.add_argument("--out", type=Path, help="write the front and the score as JSON")
    fit.add_argument("--overwrite", action="store_true", help="replace the file named by --out")
    output.offer(fit, "the formula")

    judge = commands.add_parser("score", help="compare a formula with a law")
    judge.add_argument("formula", help='for example "39.5*m1*m2/r**2"')
    file = "prediction file to compare with as well (default: the formula alone)"
    judge.add_argument("predictions", type=Path, nargs="?", help=file)
    judge.add_argument("--law", default="newton", help="the true law (default newton)")
    output.offer(judge, "the verdict")

    show = commands.add_parser("show", help="draw the leaderboard of results")
    show.add_argument("results", type=Path, help="a results folder, or its JSON lines")
    form = output.offer(show, "its first sentence")
    form.add_argument("--markdown", action="store_true", help="Markdown instead of text")

    convert = commands.add_parser(
        "import-llm", help="prediction files from the public answers of language models"
    )
    convert.add_argument("folder", type=Path, help="a local copy of inductive-bias-probes")
    convert.add_argument("out", type=Path, help="folder for one .npz per model")

    listing = commands.add_parser("ls", help="list engines, with their state, and laws")
    output.offer(listing, "the names of engines and laws")
    return parser


if __name__ == "__main__":
    main()
