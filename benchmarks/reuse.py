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


def take(grid: Sequence[Cell], source: Path, out: Path) -> None:
    """Copy the finished cells of a results folder to another one that lacks them.

    Kept results have lines alone. A line does for a cell that has no files which anything reads.

    Raises:
        CorruptArtefact: The lines were edited or damaged.
    """
    lines = _lines(source)
    read = {need.key for cell in grid for need in cell.needs.values()}
    for cell in grid:
        if _good(cell, out):
            continue
        if _good(cell, source):
            shutil.rmtree(cell.folder(out), ignore_errors=True)
            partial = out / "cells" / f".{cell.key}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(cell.folder(source), partial)
            partial.rename(cell.folder(out))
        elif cell.key in lines and cell.key not in read:
            cells.adopt(cell, lines[cell.key], out)


def _lines(source: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of finished results that name no file, by the addresses of their cells."""
    if not (source / results.LINES).is_file():
        return {}
    found = results.load(source)[0]
    return {x["cell"]: x for x in found if x["status"] == "ok" and not x.get("files")}


def _good(cell: Cell, folder: Path) -> bool:
    """Tell whether a results folder has a cell's result, under its own address."""
    record = cell.record(folder)
    return record is not None and cells.succeeded(record) and record["line"]["cell"] == cell.key
