"""What ``--reuse`` takes from other results: the addresses of cells say that they are the same."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from symreg import cells, results
from symreg.cells import Cell


def check(source: Path) -> None:
    """Refuse a folder that holds nothing to take.

    Raises:
        ValueError: It has neither cells nor result lines.
    """
    if not (source / "cells").is_dir() and not (source / results.LINES).is_file():
        raise ValueError(f"--reuse {source}: no results (no folder cells, no {results.LINES})")


def take(grid: Sequence[Cell], sources: Sequence[Path], out: Path) -> None:
    """Copy the finished cells of results folders to another one that lacks them.

    Kept results have lines alone. A line does for a cell whose files no cell reads that is still
    to be computed; it then names no files, so figures that are drawn from them go without. Where
    a later run computes one that reads them, such a cell is computed after all.

    Args:
        grid: The cells of the run, each after those it needs.
        sources: Results folders; the first that has a cell gives it.
        out: The folder of the run.

    Raises:
        CorruptArtefact: The lines of a source were edited or damaged.
    """
    lines: dict[str, dict[str, Any]] = {}
    for source in reversed(sources):
        lines |= _lines(source)
    read: set[str] = set()
    for cell in reversed(grid):  # who reads a cell is known before it is its turn
        files = cell.key in read
        if _good(cell, out, files):
            continue
        if holders := [source for source in sources if _good(cell, source, files)]:
            _copy(cell, holders[0], out)
        elif cell.key in lines and not files:
            cells.adopt(cell, lines[cell.key], out)
        else:
            if _good(cell, out, files=False):  # a line without the files that are read now
                shutil.rmtree(cell.folder(out))
            read |= {need.key for need in cell.needs.values()}


def _copy(cell: Cell, source: Path, out: Path) -> None:
    shutil.rmtree(cell.folder(out), ignore_errors=True)
    partial = out / "cells" / f".{cell.key}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(cell.folder(source), partial)
    partial.rename(cell.folder(out))


def _lines(source: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of finished results by the addresses of their cells, without files."""
    if not (source / results.LINES).is_file():
        return {}
    found = results.load(source)[0]
    return {x["cell"]: {**x, "files": {}} for x in found if x["status"] == "ok"}


def _good(cell: Cell, folder: Path, files: bool) -> bool:
    """Tell whether a results folder has a cell's result, and its files if they are asked for."""
    record = cell.record(folder)
    return (
        record is not None
        and cells.succeeded(record)
        and record["line"]["cell"] == cell.key
        and not (files and record.get("adopted"))
    )
