"""``python -m attention ls``: the variants and mixers as tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

COLUMNS = (
    "name", "formula", "source", "rows sum to", "sparse", "signed", "learned", "arguments", "about"
)  # fmt: skip

HEADER = """# Attention variants

Made by `python -m attention ls --markdown`. Row i sees keys j = 1..i; d is the head dimension, L
the sequence length, l1 the division of a row by its sum of absolute values.

"""

MIXERS = ("linear mixer", "about", "state", "source", "arguments")

MIXERS_HEADER = """

# Linear mixers

Their time is linear in L and their state constant, so there are no weights to look at. The state is
how many numbers decoding keeps for a sequence, of H heads of D channels (N: the argument state).

"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = _Parser(prog="python -m attention", description="Attention variants.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listing = commands.add_parser("ls", help="list the variants")
    listing.add_argument("--markdown", action="store_true", help="as a Markdown table")
    listing.set_defaults(run=lambda options: print(table(options.markdown)))
    options = parser.parse_args(arguments)
    options.run(options)


def table(markdown: bool = False) -> str:
    """Return the catalogue and the linear mixers as aligned or as Markdown tables."""
    from attention import linear
    from attention.catalogue import BROKEN, CATALOGUE

    variants = [
        (
            spec.name,
            spec.formula,
            spec.source,
            spec.row_sum,
            "yes" if spec.sparse else "no",
            "yes" if spec.signed else "no",
            ", ".join([*spec.learned, *(["gates"] if spec.gated else [])]) or "-",
            ", ".join(spec.arguments) or "-",
            spec.about,
        )
        for spec in CATALOGUE
    ]
    mixers = [
        (mixer.name, mixer.about, mixer.kept, mixer.source, ", ".join(mixer.arguments) or "-")
        for mixer in map(linear.get, linear.names())
    ]
    if markdown:
        return HEADER + _markdown(COLUMNS, variants) + MIXERS_HEADER + _markdown(MIXERS, mixers)
    bad = [f"left out: {line}" for line in {**BROKEN, **linear.broken()}.values()]
    return "\n".join([_aligned(COLUMNS, variants), "", _aligned(MIXERS, mixers), *bad])


Rows = Sequence[tuple[str, ...]]


def _markdown(columns: tuple[str, ...], rows: Rows) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _aligned(columns: tuple[str, ...], rows: Rows) -> str:
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    )


if __name__ == "__main__":
    main()
