"""``python -m attention tune``: measure tiles on a GPU and rewrite ``tiles.json``.

For each kernel, family and head dim the candidates that build within the limits of ``aot`` are
timed in the whole pass they belong to, forward or backward, and the fastest is kept. Entries that
no time is left for, and those of 32-bit elements, keep the tile they have.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from unittest import mock

import torch
from triton.testing import do_bench

from attention.catalogue import get
from attention.triton import backend, passes, tiles
from attention.triton.tools import aot

TABLE = Path(tiles.__file__).with_name("tiles.json")
SHAPE = (4, 12, 4096)  # B, H, L
Entry = tuple[str, str, int, int]
"""Kernel, family, head dim and bits of an element."""
NAMES = {"none": "lssa", "reweight": "lssar", "elastic": "elastic", "biased": "lazy"}


def candidates(kernel: str) -> list[tiles.Tile]:
    """Return the tiles worth trying for a kernel: four warps for every 64 rows, or half of it."""
    blocks = [(64, 32), (64, 64), (64, 128), (128, 32), (128, 64), (128, 128)]
    stages = (1, 2, 3) if kernel == "dkdv" else (2, 3)
    return [
        tiles.Tile(rows, keys, warps, depth)
        for (rows, keys), depth in itertools.product(blocks, stages)
        for warps in {rows // 16, 4}
    ]


def sound(entry: Entry, arch: int, pool: Executor) -> list[tiles.Tile]:
    """Return the candidates of an entry that build within the limits, fewest issues first.

    They are built in ``pool`` for the compute capability ``arch`` and held to its shared memory.
    """
    options = candidates(entry[0])
    reports = list(pool.map(_built, [entry] * len(options), options, [arch] * len(options)))
    within_limits = [report for report in reports if report is not None and not report.faults()]
    return [report.tile for report in sorted(within_limits, key=lambda report: report.issues)]


def _built(entry: Entry, tile: tiles.Tile, arch: int) -> aot.Report | None:
    try:
        return aot.build(*entry, tile=tile, arch=arch)
    except Exception:  # the compiler refuses some tiles, each in its own way
        return None


def seconds(entry: Entry, tile: tiles.Tile) -> float:
    """Return the median time of the pass that an entry belongs to, with this tile in it."""
    kernel, family, head_dim, bits = entry
    spec = get(NAMES[family])
    shape = (*SHAPE, head_dim)
    dtype = torch.bfloat16 if bits == 16 else torch.float32
    q, k, v, grad = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(4))
    sizes = {"head": SHAPE[1], "distance": spec.max_distance}
    parameters = {
        name: torch.ones([sizes[d] for d in dimensions], device="cuda")
        for name, dimensions in spec.learned.items()
    }
    leaves = [x.requires_grad_() for x in (q, k, v)]
    usual = tiles.tile

    def tile_of(name: str, *rest: object) -> tiles.Tile:
        return tile if name == kernel else usual(name, *rest)

    with mock.patch.object(tiles, "tile", tile_of):
        out = backend.attend(q, k, v, spec, parameters)
        if kernel in ("stats", "forward"):
            return do_bench(lambda: backend.attend(q, k, v, spec, parameters), return_mode="median")
        return do_bench(
            lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True), return_mode="median"
        )


def _seconds_or_never(entry: Entry, tile: tiles.Tile) -> float:
    try:
        return seconds(entry, tile)
    except Exception as error:  # what a GPU cannot run is no candidate
        print(f"{tiles.key(*entry)} with {tile}: {error}", file=sys.stderr)
        return math.inf


def run(options: argparse.Namespace) -> None:
    """Tune the table of the GPU at hand."""
    if not torch.cuda.is_available():
        print(
            "error: tuning needs a CUDA device; aot builds the kernels and counts without one",
            file=sys.stderr,
        )
        sys.exit(2)
    deadline = time.monotonic() + 60 * options.minutes
    major, minor = torch.cuda.get_device_capability()
    arch = 10 * major + minor
    near = passes.architecture(torch.cuda.current_device())
    if arch not in tiles.SHARED or near is None:
        print(f"error: no tiles are known for compute capability {major}.{minor}", file=sys.stderr)
        sys.exit(2)
    tables = json.loads(TABLE.read_text())
    table = {name: [x.rows, x.keys, x.warps, x.stages] for name, x in tiles.table_of(near).items()}
    # The head dims of common models first.
    entries = sorted(aot.shipped(), key=lambda entry: (64, 128, 32, 256).index(entry[2]))
    chosen = [x for x in entries if any(part in tiles.key(*x) for part in options.only)]
    if not chosen:
        raise ValueError(f"no kernel's name holds any of {', '.join(options.only)}")
    # Fresh processes, as CUDA is in use in this one, and the same for all entries. They are idle
    # while an entry is timed: a pass that runs beside compilers waits for its launches.
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for entry in chosen:
            if time.monotonic() > deadline:
                break
            name = tiles.key(*entry)
            now = tiles.Tile(*table[name])
            tried = list(dict.fromkeys([now, *sound(entry, arch, pool)[: options.tries]]))
            times = {tile: _seconds_or_never(entry, tile) for tile in tried}
            best = min(times, key=times.__getitem__)
            table[name] = [best.rows, best.keys, best.warps, best.stages]
            print(
                f"{name:30s} {times[now]:8.3f} ms -> {times[best]:8.3f} ms with {best}", flush=True
            )
            # After each: a killed run loses one entry.
            save({**tables, f"sm_{arch}": table}, options.out or TABLE)


def save(tables: dict[str, dict[str, list[int]]], out: Path) -> None:
    """Write tables one entry a line."""
    text = ",\n".join(
        f'"{arch}": {{\n'
        + ",\n".join(f'  "{name}": {json.dumps(size)}' for name, size in table.items())
        + "\n}"
        for arch, table in tables.items()
    )
    out.write_text("{" + text + "}\n")
