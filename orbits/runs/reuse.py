"""Reuse: finished cells of other results folders are copied, as their addresses say the same."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from orbits.runs.cell import CELLS, Cell, adopt, succeeded
from orbits.runs.folder import LINES, load
from orbits.runs.result import Result


def check(source: Path) -> None:
    """Refuse a folder from which nothing can be taken.

    Raises:
        ValueError: It has neither cells nor result lines, or lines of an older schema.
        CorruptArtefact: The lines were edited or damaged.
    """
    if not (source / CELLS).is_dir() and not (source / LINES).is_file():
        raise ValueError(f"--reuse {source}: no results (no folder {CELLS}, no {LINES})")
    _kept(source)


def take(cells: Sequence[Cell], sources: Sequence[Path], out: Path) -> int:
    """Copy finished cells of other results folders to one that lacks them.

    Kept results have lines alone. A line does for a cell whose files no cell reads that is still
    to be computed; it then names no files, so figures that are drawn from them go without. Where
    a later run computes one that reads them, such a cell is computed after all.

    Args:
        cells: The cells of the run, each after those it needs.
        sources: Results folders; the first that has a cell gives it.
        out: The folder of the run.

    Returns:
        How many cells were taken.
    """
    kept: dict[str, list[Result]] = {}
    for source in reversed(sources):
        kept |= _kept(source)
    taken, read = 0, set()
    for cell in reversed(cells):  # who reads a cell is known before it is its turn
        files = cell.key in read
        if _is_good(cell, out, files):
            continue
        if holders := [source for source in sources if _is_good(cell, source, files)]:
            _copy(cell, holders[0], out)
        elif cell.key in kept and not files:
            adopt(cell, kept[cell.key], out)
        else:
            if _is_good(cell, out, files=False):  # a result without the files that are read now
                shutil.rmtree(cell.folder(out))
            read |= {need.key for need in cell.needs.values()}
            continue
        taken += 1
    return taken


def _kept(source: Path) -> dict[str, list[Result]]:
    """Return the results of a folder by the addresses of their cells, without files."""
    found: dict[str, list[Result]] = {}
    if (source / LINES).is_file():
        for result in load(source)[0]:
            found.setdefault(result.cell, []).append(dataclasses.replace(result, files={}))
    return {key: results for key, results in found.items() if all(x.ok for x in results)}


def _copy(cell: Cell, source: Path, out: Path) -> None:
    shutil.rmtree(cell.folder(out), ignore_errors=True)
    partial = out / CELLS / f".{cell.key}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(cell.folder(source), partial)
    partial.rename(cell.folder(out))


def _is_good(cell: Cell, folder: Path, files: bool) -> bool:
    """Return whether a folder has a cell's result, and its files if they are read."""
    record = cell.record(folder)
    return (
        record is not None
        and succeeded(record)
        and all(result["cell"] == cell.key for result in record["results"])
        and not (files and record["adopted"])
    )
