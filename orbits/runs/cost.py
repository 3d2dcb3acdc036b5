"""The cost of a run: CPU seconds that cells of the same kind and size took before.

``cpu_seconds.yaml`` is made from results, whose records say what each cell took and with which
arguments. Those of the suite are of one machine with two cores, on the CPU. Made again by::

    python -m orbits.runs.cost benchmarks/results/* runs/tiny/* > orbits/runs/cpu_seconds.yaml

where ``runs/tiny`` has runs of the studies with ``--preset tiny``, or cells of other sizes. With
``--add`` the present table stays, and gets what it lacks.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orbits.runs.cell import Cell
from orbits.runs.folder import CLAIM, LINES, load
from orbits.runs.naming import counted, two_digits
from orbits.runs.result import Result

TABLE = Path(__file__).with_name("cpu_seconds.yaml")
STEPS = "steps"
"""The size to which the seconds are proportional; all others must be as they were."""
PROPORTIONAL = (STEPS, "batch_size", "seq_len", "n_points")
"""Sizes to which the seconds of another size are taken to be proportional."""
BACKBONE = ("n_layer", "n_head", "head_dim")
"""Sizes of a transformer, to whose number of weights its seconds are taken to be proportional."""
MANY, YEAR = 100_000, 525_960
"""CPU minutes, ten weeks, from which two digits are given, and those of a year."""
WORDS = ("backend", "engine", "mode", "problem", "task")
"""Arguments that are words, and of which the time depends."""
NO_SIZES = (
    "seed",
    "seeds",
    "version",
    "row",
    "line_kind",
    "task_version",
    "label_leak",
    "dt_octaves",
)


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of a cell.

    Attributes:
        seconds: CPU seconds of the reference machine.
        measured: Whether its variant was measured; if not, it counts as the dearest that was.
        same_size: Whether its size was measured; if not, it counts as the nearest that was.
    """

    seconds: float
    measured: bool
    same_size: bool = True


def of(cell: Cell) -> Estimate | None:
    """Return the estimated cost of a cell; None where none of its kind was measured."""
    plain = sizes(json.loads(json.dumps(dict(cell.arguments))))
    rows = _table().get(f"{cell.case.study}/{cell.case.kind}", ())
    rows = [row for row in rows if (STEPS in row["sizes"]) == (STEPS in plain)]
    if not rows:
        return None
    variant = str(cell.case.variant)

    def nearness(row: Mapping[str, Any]) -> tuple[int, bool, int]:
        known = row["sizes"]
        return (
            -len(_differing(known, plain)),
            variant in row["seconds"],
            -len(known.keys() ^ plain.keys()),
        )

    row = max(rows, key=nearness)
    known, seconds = row["sizes"], row["seconds"].get(variant, max(row["seconds"].values()))
    for name in PROPORTIONAL:
        if name in plain and known.get(name):
            seconds *= plain[name] / known[name]
    if _weights(plain) and _weights(known):
        seconds *= _weights(plain) / _weights(known)
    return Estimate(seconds, variant in row["seconds"], not _differing(known, plain))


def _weights(known: Mapping[str, Any]) -> int:
    """Return the layers times the square of the width of a transformer; 0 where there is none."""
    layers, heads, width = (known.get(name) or 0 for name in BACKBONE)
    return int(layers * (heads * width) ** 2)


def summary(left: Sequence[Cell], cells: Iterable[Cell]) -> str:
    """Return the cost of a run, for ``--dry-run``.

    Args:
        left: The cells that it would compute.
        cells: All of its cells, those that are finished or taken from other results included.
    """
    done, kinds = _finished(left, cells), _estimates(left)
    lines = [f"to compute: {counted(len(left), 'cell')}; finished or reused: {done}"]
    lines += [f"  {kind:40s} {_words(found)}" for kind, found in kinds.items()]
    found = [each for estimates in kinds.values() for each in estimates]
    if len(kinds) > 1:
        lines.append(f"  {'in all':40s} {_words(found)}")
    if any(each is not None and not each.measured for each in found):
        lines.append("* of variants that were not measured; each counts as the dearest that was")
    if any(each is not None and not each.same_size for each in found):
        lines.append("~ of sizes that were not measured; reckoned from the nearest that was")
    if any(each is not None for each in found):
        lines.append("CPU minutes are those of one core of the machine of the kept results")
    return "\n".join(lines)


def record(left: Sequence[Cell], cells: Iterable[Cell]) -> dict[str, Any]:
    """Return the cost of a run as data: CPU seconds and cells by kind, with those not measured."""
    kinds = _estimates(left)
    known = {kind: [each for each in found if each is not None] for kind, found in kinds.items()}
    return {
        "cells": len(left),
        "finished": _finished(left, cells),
        "cpu_s": sum(each.seconds for found in known.values() for each in found),
        "kinds": {
            kind: {
                "cells": len(found),
                "cpu_s": sum(each.seconds for each in known[kind]),
                "of_another_variant": sum(not each.measured for each in known[kind]),
                "of_another_size": sum(not each.same_size for each in known[kind]),
                "never_measured": len(found) - len(known[kind]),
            }
            for kind, found in kinds.items()
        },
    }


def _finished(left: Sequence[Cell], cells: Iterable[Cell]) -> int:
    return len({cell.key for cell in cells}) - len(left)


def _estimates(left: Sequence[Cell]) -> dict[str, list[Estimate | None]]:
    kinds: dict[str, list[Estimate | None]] = defaultdict(list)
    for cell in left:
        kinds[f"{cell.case.study}, {cell.case.kind}"].append(of(cell))
    return kinds


def _words(found: Sequence[Estimate | None]) -> str:
    known = [each for each in found if each is not None]
    marks = (
        (sum(not each.measured for each in known), "*"),
        (sum(not each.same_size for each in known), "~"),
    )
    words = f"{len(found):5d} {'cell ' if len(found) == 1 else 'cells'}  "
    if known:
        minutes = sum(each.seconds for each in known) / 60
        if minutes < MANY:
            words += f"{minutes:9.1f} CPU minutes"
        else:
            words += f"{two_digits(minutes):>9} CPU minutes, {two_digits(minutes / YEAR)} years"
    if told := ", ".join(f"{count} {mark}" for count, mark in marks if count):
        words += f" ({told})"
    if unknown := len(found) - len(known):
        words += " and " if known else ""
        words += f"unknown: {counted(unknown, 'cell')} of a kind never measured"
    return words


def sizes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that decide the cost of a cell, by their last name.

    These are whole numbers, switches, the lengths of lists and a few words (``WORDS``); of several
    of one name the largest, in whatever order they are written.
    """
    found: dict[str, list[Any]] = defaultdict(list)
    for name, value in _leaves(arguments):
        found[name].append(value)
    return {name: max(values, key=_rank) for name, values in found.items()}


def _rank(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value  # words are after numbers, which they compare with not


def _leaves(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the sizes in nested arguments, with their last name."""
    for name, value in arguments.items():
        if name in NO_SIZES or name.endswith(("_seed", "_seeds")):
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value)
        elif isinstance(value, list | tuple):
            yield name, len(value)
        elif isinstance(value, int) or (name in WORDS and isinstance(value, str)):
            yield name, value


def calibrate(runs: Iterable[Iterable[Result]]) -> list[dict[str, Any]]:
    """Return the rows of the table: the median over the cells of each kind, size and variant.

    Args:
        runs: The results of each run; where several share a cell, the first run's count.
    """
    cells: dict[str, list[Result]] = {}
    for results in runs:
        mine: dict[str, list[Result]] = defaultdict(list)
        for result in results:
            mine[result.cell].append(result)
        cells = {**mine, **cells}
    seconds: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for group in cells.values():
        took = sum(result.cpu_s for result in group)
        first = group[0]
        if took and all(result.ok and _on_cpu(result) for result in group):
            of_size = json.dumps(sizes(first.manifest["config"]), sort_keys=True)
            kind = f"{first.case.study}/{first.case.kind}"
            seconds[kind, of_size][str(first.case.variant)].append(took)
    return [
        {
            "of": kind,
            "sizes": json.loads(of_size),
            "seconds": {k: float(f"{statistics.median(v):.2g}") for k, v in sorted(took.items())},
        }
        for (kind, of_size), took in sorted(seconds.items())
    ]


def added(rows: Sequence[dict[str, Any]], known: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a table completed by others' kinds, sizes and variants.

    Args:
        rows: The others, as of :func:`calibrate`.
        known: The rows of the table.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in (*rows, *known):  # in which the last of a variant counts
        before = found.get(_place(row), row)["seconds"]
        seconds = dict(sorted({**before, **row["seconds"]}.items()))
        found[_place(row)] = {**row, "seconds": seconds}
    return [found[place] for place in sorted(found)]


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["of"], json.dumps(row["sizes"], sort_keys=True)


def _on_cpu(result: Result) -> bool:
    return str(result.manifest.get("device", "cpu")).startswith("cpu")


def _differing(measured: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return in which sizes a cell differs from one that was measured, its steps left out.

    Arguments that only one of them has are of an earlier or a later version and decide nothing.
    """
    shared = measured.keys() & asked.keys() - {STEPS}
    return [name for name in shared if measured[name] != asked[name]]


@functools.cache
def _table() -> Mapping[str, Sequence[dict[str, Any]]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in yaml.load(TABLE.read_text(encoding="utf-8"), loader):
        found[row["of"]].append(row)
    return found


def main() -> None:
    """Print the table that results folders give."""
    parser = argparse.ArgumentParser(description="Print CPU seconds by kind and size of cells.")
    parser.add_argument(
        "folders",
        metavar="DIR",
        nargs="+",
        type=Path,
        help="results folders; unfinished and other folders are passed over",
    )
    parser.add_argument("--add", action="store_true", help="add to the present table")
    asked = parser.parse_args()
    folders = [
        each for each in asked.folders if all((each / name).is_file() for name in (CLAIM, LINES))
    ]
    rows = calibrate(load(folder)[0] for folder in folders)
    if asked.add:
        rows = added(rows, [row for group in _table().values() for row in group])
    print("# Made by python -m orbits.runs.cost; see its file.")
    yaml.safe_dump(rows, sys.stdout, sort_keys=False, default_flow_style=None, width=10**6)


if __name__ == "__main__":
    main()
