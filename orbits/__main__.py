"""Command line of the datasets: generate, verify, info, plot, export, solar-system, ls."""

from __future__ import annotations

from orbits.runs import stopped  # noqa: F401  (first: it answers Ctrl-C from here on)

# isort: split
import argparse
from collections.abc import Sequence

from orbits.runs import output
from orbits.runs.cli import OneLineParser, called, one_line_errors, taken


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    options = _parser().parse_args(taken(arguments))
    with one_line_errors(resumes=options.command == "generate"):
        from orbits import commands  # numpy and more, which the help does without

        getattr(commands, options.command.replace("-", "_"))(options)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog=called("orbits"), description="Orbit datasets.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = commands.add_parser

    generate = add(
        "generate",
        help="export a dataset to files; again to resume or repair it",
        description="Export a dataset to files. What is there and intact is skipped, so the same "
        "command resumes and repairs. Any scheduler can run pieces of it with --shards, on any "
        "machine that sees the folder; the piece that finds all shards there finishes the dataset.",
    )
    generate.add_argument("--protocol", default="identifiable", help="see `ls` (identifiable)")
    generate.add_argument("--law", help="force law (see `ls`; default: the protocol's)")
    population = "pretrain, or where there are labels force, which is the default there"
    generate.add_argument("--population", help=population)
    generate.add_argument("--shift", help="a shift of the test sequences (see `ls`); no others")
    generate.add_argument("--shift-file", metavar="YAML", help="further shifts to choose from")
    generate.add_argument("--n", type=int, help="training sequences (1000)")
    generate.add_argument("--n-val", type=int, help="validation sequences (100)")
    generate.add_argument("--n-test", type=int, default=100, help="test sequences (100)")
    generate.add_argument("--n-points", type=int, help="observed points per sequence")
    generate.add_argument("--n-bins", type=int, help="position bins per coordinate")
    generate.add_argument("--seed", type=int, default=0, help="draws the systems (0)")
    generate.add_argument("--shard-size", type=int, help="sequences per shard (default: 128 MB)")
    generate.add_argument("--shards", metavar="A:B", type=_span, help="make only shards A to B - 1")
    generate.add_argument("--workers", type=int, default=1, help="shards at once (1)")
    generate.add_argument("--executor", help="here, processes, slurm or dask (by --workers)")
    generate.add_argument("--partition", help="Slurm partition")
    generate.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler")
    generate.add_argument("--out", required=True, help="folder of the dataset")

    verify = add("verify", help="hash every file again; exit code 1 if one is bad")
    folder = "the dataset's folder"
    verify.add_argument("path", help=folder)

    info = add("info", help="print a dataset's card")
    info.add_argument("path", help=folder)
    output.offer(info, "its sha256")

    plot = add("plot", help="draw orbits and distributions")
    plot.add_argument("path", help=folder)
    plot.add_argument("--split", help="one split (default: train, or test of a shift)")
    plot.add_argument("--n", type=int, default=6, help="orbits to draw, at most 6")
    plot.add_argument("--out", help="picture to write (default: PATH/SPLIT.png)")

    export = add("export", help="write a dataset as HDF5 (the Well's layout) or for load_dataset")
    export.add_argument("path", help=folder)
    export.add_argument("--out", required=True, help="file, or with --form hub folder, to write")
    export.add_argument(
        "--form",
        choices=("well", "hub"),
        default="well",
        help="well: one split as HDF5 in the Well's layout (default); hub: a folder of Parquet "
        "files and a card, which datasets.load_dataset reads",
    )
    export.add_argument("--split", help="one split (default: as of plot; of hub, all)")

    solar = add("solar-system", help="write the Solar System as evaluation sequences")
    solar.add_argument(
        "--out", required=True, help="folder to write single.npz and two_body.npz into"
    )
    solar.add_argument("--protocol", default="fixed", help="paper (as published) or fixed")
    solar.add_argument("--dt", type=float, help="one of the protocol's time steps in years")

    listing = add("ls", help="list protocols, shifts and laws")
    output.offer(listing, "the names of protocols, shifts and laws")
    return parser


def _span(text: str) -> tuple[int, int]:
    try:
        first, last = map(int, text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not A:B, for example 0:10") from None
    return first, last


if __name__ == "__main__":
    main()
