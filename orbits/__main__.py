"""``python -m orbits generate|info|plot|ls``."""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m orbits", description="Orbit datasets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    generate = commands.add_parser("generate", help="export a dataset to files")
    generate.add_argument("--protocol", default="identifiable")
    generate.add_argument("--law", default="newton", help="force law (see `ls`)")
    generate.add_argument("--population", default="force", help="pretrain or force (labelled)")
    generate.add_argument("--n", type=int, default=1000, help="training sequences")
    generate.add_argument("--n-val", type=int, default=100)
    generate.add_argument("--n-test", type=int, default=100)
    generate.add_argument("--n-points", type=int, help="observed points per sequence")
    generate.add_argument("--n-bins", type=int, help="position bins per coordinate")
    generate.add_argument("--seed", type=int, default=0)
    generate.add_argument("--out", required=True, help="folder of the dataset")
    generate.set_defaults(run=_generate)

    info = commands.add_parser("info", help="print a dataset's card and check its files")
    info.add_argument("path")
    info.set_defaults(run=_info)

    plot = commands.add_parser("plot", help="draw orbits and distributions")
    plot.add_argument("path")
    plot.add_argument("--split", default="train")
    plot.add_argument("--n", type=int, default=6, help="orbits to draw, at most 6")
    plot.add_argument("--out", help="picture to write (default: PATH/SPLIT.png)")
    plot.set_defaults(run=_plot)

    listing = commands.add_parser("ls", help="list protocols and laws")
    listing.set_defaults(run=_list)
    return parser


def _generate(options: argparse.Namespace) -> None:
    from orbits import dataset, laws, protocols

    overrides = {"n_points": options.n_points, "n_bins": options.n_bins}
    protocol = protocols.get(
        options.protocol, {key: value for key, value in overrides.items() if value is not None}
    )
    if laws.get(options.law).name != protocol.law:
        raise ValueError(f"protocol {protocol.name!r} is a world of law {protocol.law!r}")
    counts = {"train": options.n, "val": options.n_val, "test": options.n_test}
    out = dataset.generate(
        options.out, protocol, counts, seed=options.seed, population=options.population
    )
    print(f"{sum(counts.values())} sequences in {out}")


def _info(options: argparse.Namespace) -> None:
    from orbits.dataset import SHARD, OrbitDataset, read_index

    record = read_index(options.path)
    manifest = record["manifest"]
    config, protocol = manifest["config"], manifest["config"]["protocol"]
    print(f"dataset     {options.path}")
    print(f"protocol    {protocol['name']} (law: {protocol['law']}), {config['population']}")
    print(f"box         {protocol['low']} to {protocol['high']} AU in {protocol['n_bins']} bins")
    print(f"time steps  {', '.join(f'{dt:.4g}' for dt in protocol['dts'])} years")
    print(f"rows        1 time-step row + {protocol['n_points']} points")
    print(f"seed        {config['seed']}")
    print(f"made        {manifest['utc']}, commit {manifest['git']['commit']}")
    for split, count in config["counts"].items():
        data = OrbitDataset(options.path, split)
        for number in range(-(-count // SHARD)):
            data.shard(number)
        print(f"{split:11s} {count} sequences, checksums match")
    print("arrays      " + ", ".join(f"{k} {v.dtype}{list(v.shape)}" for k, v in data[0].items()))


def _plot(options: argparse.Namespace) -> None:
    from pathlib import Path

    from orbits.dataset import OrbitDataset
    from orbits.plots import plot_dataset

    if options.n < 1:
        raise ValueError(f"--n must be at least 1, got {options.n}")
    out = options.out or Path(options.path) / f"{options.split}.png"
    print(plot_dataset(OrbitDataset(options.path, options.split), out, options.n))


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


if __name__ == "__main__":
    main()
