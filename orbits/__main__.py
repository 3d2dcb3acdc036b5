"""``python -m orbits generate|verify|info|plot|export|solar-system|ls``."""

from __future__ import annotations

import argparse
import sys

from orbits.command_line import OneLineParser, one_line_errors


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    options = _parser().parse_args(arguments)
    with one_line_errors(resumes=options.run is _generate):
        options.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="python -m orbits", description="Orbit datasets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    generate = commands.add_parser(
        "generate",
        help="export a dataset to files; again to resume or repair it",
        description="Export a dataset to files. What is there and intact is skipped, so the same "
        "command resumes and repairs. Any scheduler can run pieces of it with --shards, on any "
        "machine that sees the folder; the piece that finds all shards there finishes the dataset.",
    )
    generate.add_argument("--protocol", default="identifiable", help="see `ls`")
    generate.add_argument("--law", help="force law (see `ls`; default: the protocol's)")
    generate.add_argument("--population", help="pretrain or, where there are labels, force")
    generate.add_argument("--n", type=int, default=1000, help="training sequences")
    generate.add_argument("--n-val", type=int, default=100)
    generate.add_argument("--n-test", type=int, default=100)
    generate.add_argument("--n-points", type=int, help="observed points per sequence")
    generate.add_argument("--n-bins", type=int, help="position bins per coordinate")
    generate.add_argument("--seed", type=int, default=0)
    generate.add_argument("--shard-size", type=int, help="sequences per shard (default: 128 MB)")
    generate.add_argument("--shards", metavar="A:B", type=_span, help="make only shards A to B - 1")
    generate.add_argument("--workers", type=int, default=1, help="processes on this machine")
    generate.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler, or `local`")
    generate.add_argument("--out", required=True, help="folder of the dataset")
    generate.set_defaults(run=_generate)

    verify = commands.add_parser("verify", help="hash every file again; exit code 1 if one is bad")
    verify.add_argument("path")
    verify.set_defaults(run=_verify)

    info = commands.add_parser("info", help="print a dataset's card")
    info.add_argument("path")
    info.set_defaults(run=_info)

    plot = commands.add_parser("plot", help="draw orbits and distributions")
    plot.add_argument("path")
    plot.add_argument("--split", default="train")
    plot.add_argument("--n", type=int, default=6, help="orbits to draw, at most 6")
    plot.add_argument("--out", help="picture to write (default: PATH/SPLIT.png)")
    plot.set_defaults(run=_plot)

    export = commands.add_parser("export", help="write a split as HDF5 in the layout of the Well")
    export.add_argument("path")
    export.add_argument("out", help="file to write")
    export.add_argument("--split", default="train")
    export.set_defaults(run=_export)

    solar = commands.add_parser(
        "solar-system", help="write the Solar System as evaluation sequences"
    )
    solar.add_argument("out", help="folder to write single.npz and two_body.npz into")
    solar.add_argument("--protocol", default="fixed", help="paper (as published) or fixed")
    solar.add_argument("--dt", type=float, help="one of the protocol's time steps in years")
    solar.set_defaults(run=_solar_system)

    listing = commands.add_parser("ls", help="list protocols and laws")
    listing.set_defaults(run=_list)
    return parser


def _span(text: str) -> tuple[int, int]:
    try:
        first, last = map(int, text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not A:B, for example 0:10") from None
    return first, last


def _generate(options: argparse.Namespace) -> None:
    from orbits import protocols
    from orbits.generate import generate

    overrides = {name: getattr(options, name) for name in ("law", "n_points", "n_bins")}
    protocol = protocols.get(
        options.protocol, {name: value for name, value in overrides.items() if value is not None}
    )
    counts = {"train": options.n, "val": options.n_val, "test": options.n_test}
    missing = generate(
        options.out,
        protocol,
        counts,
        seed=options.seed,
        population=options.population or protocol.populations[-1],
        sequences_per_shard=options.shard_size,
        shards=options.shards,
        workers=options.workers,
        dask=options.dask,
    )
    if missing:
        print(f"{missing} shards are still missing in {options.out}")
    else:
        print(f"{sum(counts.values())} sequences in {options.out}")


def _verify(options: argparse.Namespace) -> None:
    from orbits.dataset import AGAIN, read_index, verify

    problems = verify(options.path)
    if problems:
        print("\n".join([*problems, f"to repair, {AGAIN}"]))
        sys.exit(1)
    record = read_index(options.path)
    print(f"{len(record['sha256'])} files intact, dataset sha256 {record['dataset_sha256']}")


def _info(options: argparse.Namespace) -> None:
    from orbits.card import card

    print(card(options.path))


def _plot(options: argparse.Namespace) -> None:
    from pathlib import Path

    from orbits.dataset import OrbitDataset
    from orbits.plots import plot_dataset

    if options.n < 1:
        raise ValueError(f"--n must be at least 1, got {options.n}")
    out = options.out or Path(options.path) / f"{options.split}.png"
    print(plot_dataset(OrbitDataset(options.path, options.split), out, options.n))


def _export(options: argparse.Namespace) -> None:
    from orbits.dataset import OrbitDataset
    from orbits.hdf5 import export

    print(export(OrbitDataset(options.path, options.split), options.out))


def _solar_system(options: argparse.Namespace) -> None:
    from pathlib import Path

    from orbits import artefacts, protocols, solar_system
    from orbits.manifest import manifest

    protocol = protocols.get(options.protocol)
    made = {
        "single": solar_system.single_sequence(protocol, options.dt),
        "two_body": solar_system.two_body(protocol, options.dt),
    }
    config = {"protocol": protocol.config(), "dt": options.dt}
    paths = [Path(options.out) / f"{name}.npz" for name in made]
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path} exists; choose another folder")
    for path, arrays in zip(paths, made.values(), strict=True):
        artefacts.save_arrays(path, arrays, manifest(config, seed=0))
        print(path)


def _list(options: argparse.Namespace) -> None:
    from orbits import laws, protocols

    for name in protocols.names():
        protocol = protocols.get(name)
        print(
            f"protocol {name:14s} {protocol.n_points} points, {protocol.n_bins} bins, "
            f"law {protocol.law}"
        )
    for name in laws.names():
        law = laws.get(name)
        print(f"law      {name:14s} {law.expression}  ({law.reference})")
    for line in laws.broken().values():
        print(f"no law: {line}")


if __name__ == "__main__":
    main()
