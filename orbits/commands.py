"""Commands of ``python -m orbits``, each a function of the parsed options."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from orbits import dataset, laws, protocols, shifts
from orbits.dataset.card import card
from orbits.dataset.export import write_hdf5
from orbits.dataset.hub import write_hub
from orbits.dataset.read import AGAIN
from orbits.runs import artefact, output
from orbits.runs.cli import next_line
from orbits.runs.executors import Execution
from orbits.runs.figure import check_picture
from orbits.runs.manifest import manifest
from orbits.solar_system import single_sequence, two_body


def generate(options: argparse.Namespace) -> None:
    """Export a dataset, or some shards of it."""
    overrides = {name: getattr(options, name) for name in ("law", "n_points", "n_bins")}
    overrides["shift"] = _shift(options)
    protocol = protocols.get(
        options.protocol, {name: value for name, value in overrides.items() if value is not None}
    )
    counts = _counts(options)
    missing = dataset.generate(
        options.out,
        protocol,
        counts,
        seed=options.seed,
        population=options.population or protocol.populations[-1],
        sequences_per_shard=options.shard_size,
        shards=options.shards,
        execution=Execution(
            options.executor or ("here" if options.workers == 1 else "processes"),
            options.workers,
            options.partition,
            options.scheduler,
        ),
    )
    if missing:
        print(f"{missing} shards are still missing in {options.out}")
    else:
        splits = ", ".join(f"{count} {split}" for split, count in counts.items())
        print(f"{sum(counts.values())} sequences in {options.out}: {splits}")
        _say_next(f"orbits plot {shlex.quote(options.out)}")


def _shift(options: argparse.Namespace) -> shifts.Shift | None:
    """Return the shift that is asked for."""
    if options.shift is not None:
        return shifts.get(options.shift, options.shift_file)
    if options.shift_file is not None:
        known = ", ".join(shift.name for shift in shifts.load(options.shift_file))
        raise ValueError(f"--shift-file {options.shift_file}: choose one by --shift: {known}")
    return None


def _counts(options: argparse.Namespace) -> dict[str, int]:
    """Return the number of sequences of each split; under a shift there is one."""
    if options.shift is None:
        train, val = (1000 if options.n is None else options.n), options.n_val
        return {"train": train, "val": 100 if val is None else val, "test": options.n_test}
    for flag, value in (("--n", options.n), ("--n-val", options.n_val)):
        if value is not None:
            raise ValueError(f"{flag} {value}: a shift has test sequences alone; use --n-test")
    return {"test": options.n_test}


def verify(options: argparse.Namespace) -> None:
    """Hash every file of a dataset again."""
    problems = dataset.verify(options.path)
    if problems:
        print("\n".join([*problems, f"to repair, {AGAIN}"]))
        sys.exit(1)
    record = dataset.read_index(options.path)
    print(f"{len(record['sha256'])} files intact, dataset sha256 {record['dataset_sha256']}")
    _say_next(f"orbits plot {shlex.quote(options.path)}")


def info(options: argparse.Namespace) -> None:
    """Print the card of a dataset, or its index as JSON."""
    index = dataset.read_index(options.path)
    output.say(options, lambda: card(options.path), lambda: index, lambda: index["dataset_sha256"])


def plot(options: argparse.Namespace) -> None:
    """Draw a split of a dataset."""
    if options.n < 1:
        raise ValueError(f"--n must be at least 1, got {options.n}")
    name = options.split or _first_split(options.path)
    split = dataset.OrbitDataset(options.path, name)
    out = Path(options.out or Path(options.path) / f"{name}.png")
    check_picture(out)
    from orbits.dataset.plots import plot_dataset  # matplotlib, once there is something to draw

    print(f"written    {plot_dataset(split, out, options.n)}")
    if name == "train":
        _say_next(f"worldmodel fit -c pretrain --data.path {shlex.quote(options.path)}")


def _first_split(path: str) -> str:
    """Return the split of training sequences, or the only one of a dataset under a shift."""
    counts = dataset.read_index(path)["config"]["counts"]
    return "train" if "train" in counts else str(next(iter(counts)))


def export(options: argparse.Namespace) -> None:
    """Write a split as HDF5, or the splits as a folder of Parquet files."""
    if options.form == "hub":
        out = write_hub(options.path, options.out, options.split and [options.split])
        print(f"written    {out}\nin Python: datasets.load_dataset({str(out)!r})")
    else:
        if Path(options.out).is_file():
            raise FileExistsError(f"{options.out} exists; choose another --out")
        split = dataset.OrbitDataset(options.path, options.split or _first_split(options.path))
        out = write_hdf5(split, options.out)
        print(f"written    {out}\nin Python: h5py.File({str(out)!r})")


def _say_next(command: str) -> None:
    """Print the command that comes next."""
    print(next_line(command))


def solar_system(options: argparse.Namespace) -> None:
    """Write the Solar System as evaluation sequences."""
    paths = {name: Path(options.out) / f"{name}.npz" for name in ("single", "two_body")}
    for path in paths.values():
        if path.exists():
            raise FileExistsError(f"{path} exists; choose another folder")
    protocol = protocols.get(options.protocol)
    made = {
        "single": single_sequence(protocol, options.dt),
        "two_body": two_body(protocol, options.dt),
    }
    config = {"protocol": protocol.config(), "dt": options.dt}
    for name, arrays in made.items():
        artefact.save_arrays(paths[name], arrays, manifest(config, seed=0))
        print(f"written    {paths[name]}")
    print(f"in Python: numpy.load({str(paths['two_body'])!r})['tokens']")
    _say_next(f"worldmodel fit -c pretrain --data.protocol={protocol.name}")


def ls(options: argparse.Namespace) -> None:
    """List protocols, shifts and laws."""
    names = (*protocols.names(), *shifts.names(), *laws.names())
    output.say(options, _list_text, _listed, lambda: "\n".join(names))


def _list_text() -> str:
    """Return protocols, shifts and laws, a line each."""
    made = {name: protocols.get(name) for name in protocols.names()}
    known = {name: laws.get(name) for name in laws.names()}
    width = max(map(len, known))
    return "\n".join(
        [
            *(
                f"protocol {name:14s} {x.n_points} points, {x.n_bins} bins, law {x.law}"
                for name, x in made.items()
            ),
            *(f"shift    {name:14s} {shifts.get(name).about}" for name in shifts.names()),
            *(f"law      {n:{width}s} {x.expression}  ({x.reference})" for n, x in known.items()),
            *(
                f"laws     {x.name:{width}s} {x.expression}  ({x.reference})"
                for x in laws.families()
            ),
            *(f"no law: {line}" for line in laws.broken().values()),
        ]
    )


def _listed() -> dict[str, Any]:
    """Return the same as plain data, by name."""
    made = {name: protocols.get(name) for name in protocols.names()}
    named = {name: laws.get(name) for name in laws.names()}
    formulas = {name: (law.expression, law.reference) for name, law in named.items()}
    formulas |= {each.name: (each.expression, each.reference) for each in laws.families()}
    return {
        "protocols": {
            name: {"n_points": each.n_points, "n_bins": each.n_bins, "law": each.law}
            for name, each in made.items()
        },
        "shifts": {name: shifts.get(name).about for name in shifts.names()},
        "laws": {
            name: {"expression": expression, "reference": reference}
            for name, (expression, reference) in formulas.items()
        },
        "broken": list(laws.broken().values()),
    }
