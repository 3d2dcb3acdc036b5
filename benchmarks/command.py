"""What the commands of all benchmarks share: flags, one line for bad input, running cells."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from symreg.cells import Cell, Compute


def add_arguments(parser: argparse.ArgumentParser, out: str) -> None:
    """Add how many cells run at once, where results go, and what may happen to those there.

    Args:
        parser: The parser of a benchmark.
        out: The default folder, as the help shows it.
    """
    parser.add_argument(
        "--jobs", type=int, help="worker processes (default: the preset's, or cores; 1 with a GPU)"
    )
    parser.add_argument("--out", help=f"results folder (default: {out})")
    parser.add_argument(
        "--reuse", metavar="DIRS", default="", help="comma-separated results to take cells from"
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue with a changed configuration"
    )
    parser.add_argument("--overwrite", action="store_true", help="discard the folder's results")


def check(options: argparse.Namespace, out: Path, config: Mapping[str, Any]) -> None:
    """Refuse a folder that is not for this configuration, or nothing to reuse; nothing is written.

    Raises:
        ValueError: As :func:`symreg.results.check`; fewer than one job; or a folder of ``--reuse``
            holds no results.
    """
    from benchmarks import reuse
    from symreg import results

    results.check(out, config, resume=options.resume, overwrite=options.overwrite)
    if options.jobs is not None and options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {options.jobs}")
    for folder in _folders(options.reuse):
        reuse.check(folder)


def compute(
    options: argparse.Namespace,
    out: Path,
    config: Mapping[str, Any],
    grid: Sequence[Cell],
    functions: Mapping[str, Compute],
    initialise: Callable[[], None],
    jobs: int | None,
) -> None:
    """Claim the folder, compute what is not done and write the result lines.

    Raises:
        ValueError: As :func:`check`.
        SystemExit: With code 1, where cells failed; what was skipped is no failure.
    """
    from benchmarks import reuse
    from orbits import locks
    from symreg import cells, results

    jobs = _default_jobs() if jobs is None else jobs
    with locks.lock(out):
        results.claim(out, config, resume=options.resume, overwrite=options.overwrite)
        reuse.take(grid, _folders(options.reuse), out)
        lines = cells.run(grid, out, functions, jobs=jobs, initialise=initialise)
        path = results.save(out, lines)
    without = [line for line in lines if line["status"] != "ok"]
    count = Counter(line["status"] for line in lines)
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{len(lines)} cells, {count['failed']} failed{skipped}: {path}")
    for line in without:
        print(f"  {line['status']}: {line['row']}: {line['error']}")
    print(f"next: python -m benchmarks report {out}")
    if count["failed"]:
        sys.exit(1)


def _folders(reuse: str) -> list[Path]:
    return [Path(name.strip()) for name in reuse.split(",") if name.strip()]


def _default_jobs() -> int:
    import torch

    if torch.cuda.is_available():
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(8, cores or 1)
