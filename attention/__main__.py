"""``python -m attention ls``: the catalogue as a table."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

COLUMNS = ("name", "formula", "source", "rows sum to", "sparse", "signed", "learned", "arguments")

HEADER = """# Attention variants

Made by `python -m attention ls --markdown`. Row i sees keys j = 1..i; d is the head dimension, L
the sequence length, l1 the division of a row by its sum of absolute values.

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
    """Return the catalogue as an aligned or a Markdown table."""
    from attention.catalogue import CATALOGUE

    rows = [
        (
            spec.name,
            spec.formula,
            spec.source,
            spec.row_sum,
            "yes" if spec.sparse else "no",
            "yes" if spec.signed else "no",
            ", ".join([*spec.learned, *(["gates"] if spec.gated else [])]) or "-",
            ", ".join(spec.arguments) or "-",
        )
        for spec in CATALOGUE
    ]
    if markdown:
        lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
        return HEADER + "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(len(row[i]) for row in (COLUMNS, *rows)) for i in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (COLUMNS, *rows)
    )


if __name__ == "__main__":
    main()
