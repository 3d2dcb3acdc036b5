"""``python -m attention``: tables of variants and mixers; builds and tunes the fused kernels.

The first word chooses what is imported; help and ``ls`` need no torch.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from attention.listing import brief, called, records, table
from attention.scalars import check_size
from attention.triton.tiles import SHARED


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line on stderr, and exit code 2."""

    def error(self, message: str) -> NoReturn:
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, or show its help; bad input is one line on stderr and exit code 2."""
    words = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(words or ["--help"])
    if options.command == "ls":
        try:
            print(_listed(options), flush=True)
        except BrokenPipeError:  # the reader, for example `head`, has seen enough
            # What is left must go somewhere: Python writes it when it exits, and would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        tool = importlib.import_module(f"attention.triton.tools.{options.command}")
        try:
            check_size("--jobs", options.jobs)
            tool.run(options)
        except ValueError as error:
            _parser().error(str(error))


def _listed(options: argparse.Namespace) -> str:
    if options.json:
        return json.dumps(records())
    if options.quiet:
        known = records()
        return "\n".join([*known["variants"], *known["mixers"]])
    if sys.stdout.isatty() and not options.markdown:
        return brief(shutil.get_terminal_size().columns)
    return table(options.markdown)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=called(), description="Attention variants.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("ls", help="list the variants")
    form = listing.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="as a Markdown table")
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--quiet", action="store_true", help="print the names alone")

    aot = commands.add_parser(
        "aot", help="build the fused kernels for a GPU that is not there, and check their limits"
    )
    aot.add_argument(
        "--arch", type=int, default=90, choices=tuple(SHARED), help="compute capability, as 90"
    )
    aot.add_argument(
        "--only", nargs="+", default=[""], help="entries whose name contains one of these"
    )
    aot.add_argument("--kinds", action="store_true", help="what else they serve, at d64 16bit")
    aot.add_argument("--jobs", type=int, default=2, help="processes")

    tune = commands.add_parser("tune", help="measure tile sizes on this GPU and rewrite the table")
    tune.add_argument(
        "--only", nargs="+", default=["16bit"], help="entries whose name contains one of these"
    )
    tune.add_argument("--minutes", type=float, default=8.0, help="start no entry after this")
    tune.add_argument("--tries", type=int, default=4, help="candidates timed per entry")
    tune.add_argument("--jobs", type=int, default=16, help="processes that compile")
    tune.add_argument("--out", type=Path, help="table to write (default: that of the package)")
    return parser


if __name__ == "__main__":
    main()
