"""Reuse: finished cells of other results folders are copied where their addresses agree.

Kept results have lines alone. A line does for a cell whose files no cell reads that is still to be
computed; it then names no files, so figures that are drawn from them go without. A study may make
files of what is kept beside the lines (:meth:`orbits.runs.study.Study.restore`), such as the
weights of a trained model. A cell whose files are read and not made is computed after all.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from orbits.runs import artefact
from orbits.runs.cell import CELLS, RECORD, Adopted, Cell, adopt, succeeded
from orbits.runs.folder import LINES, load
from orbits.runs.result import Result


@dataclass(frozen=True)
class Kept:
    """Results that are kept without their cells.

    Attributes:
        folder: Folder of the results.
        results: The results of the cells that have one, by address; they name no files.
    """

    folder: Path
    results: Mapping[str, Sequence[Result]]


Restore = Callable[[Cell, Kept], Adopted | None]
"""Function with the arguments of :meth:`orbits.runs.study.Study.restore`."""


@dataclass(frozen=True)
class Plan:
    """Cells that a run takes from other results; nothing is written before it is carried out.

    Attributes:
        taken: Functions, each of which puts one cell into the folder of the run.
        stale: Folders of cells that are computed again, since files that others read are missing.
        left: The cells that the run computes.
    """

    taken: Sequence[Callable[[], None]]
    stale: Sequence[Path]
    left: Sequence[Cell]

    def carry_out(self) -> None:
        """Write to the folder of the run."""
        for place in self.stale:
            shutil.rmtree(place)
        for put in self.taken:
            put()


def check(source: Path) -> None:
    """Refuse a folder from which nothing can be taken."""
    if not (source / CELLS).is_dir() and not (source / LINES).is_file():
        raise ValueError(f"--reuse {source}: no results (no folder {CELLS}, no {LINES})")
    _kept(source)


def plan(
    cells: Sequence[Cell],
    sources: Sequence[Path],
    out: Path,
    restore: Restore = lambda cell, kept: None,
    fresh: bool = False,
) -> Plan:
    """Find the cells of a run in other results folders.

    Args:
        cells: The cells of the run, each after those it needs.
        sources: Results folders; the first that has a cell gives it.
        out: The folder of the run.
        restore: Makes the files of a kept cell.
        fresh: Whether what is in ``out`` does not count.
    """
    all_kept = [_kept(source) for source in sources]
    taken: list[Callable[[], None]] = []
    stale: list[Path] = []
    left: list[Cell] = []
    read: dict[str, set[str]] = {}
    unique = {cell.key: cell for cell in cells}
    for cell in reversed(unique.values()):  # who reads a cell is known before it is its turn
        roles = read.get(cell.key, set())
        if not fresh and _is_good(cell, out, roles):
            continue
        holder = next((source for source in sources if _is_good(cell, source, roles)), None)
        if holder is not None:
            taken.append(partial(_copy, cell, holder, out))
        elif found := _adopted(cell, all_kept, roles, restore):
            taken.append(partial(adopt, cell, found, out))
        else:
            left.append(cell)
            if not fresh and _is_good(cell, out, set()):
                stale.append(cell.folder(out))
            for role, need in cell.needs.items():
                read.setdefault(need.key, set()).add(role)
    return Plan(taken, stale, left[::-1])


def _adopted(
    cell: Cell, all_kept: Sequence[Kept], roles: Set[str], restore: Restore
) -> Adopted | None:
    """Return the kept results of a cell, with the files that are read in these roles."""
    for kept in all_kept:
        found = restore(cell, kept)
        if found is None and cell.key in kept.results:
            found = Adopted(kept.results[cell.key])
        if found is not None and roles <= found.serves:
            return found
    return None


def _kept(source: Path) -> Kept:
    found: dict[str, list[Result]] = {}
    if (source / LINES).is_file():
        for result in load(source)[0]:
            found.setdefault(result.cell, []).append(dataclasses.replace(result, files={}))
    good = {key: results for key, results in found.items() if all(x.ok for x in results)}
    return Kept(source, good)


def _copy(cell: Cell, source: Path, out: Path) -> None:
    shutil.rmtree(cell.folder(out), ignore_errors=True)
    unfinished = out / CELLS / f".{cell.key}.partial"
    shutil.rmtree(unfinished, ignore_errors=True)
    record = cell.record(source)
    if record is None:
        raise ValueError(f"{cell.folder(source)} was changed while it was read; start again")
    for name in (RECORD, *record["sha256"]):
        place = artefact.below(unfinished, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(artefact.below(cell.folder(source), name), place)
    unfinished.rename(cell.folder(out))


def _is_good(cell: Cell, folder: Path, roles: Set[str]) -> bool:
    """Return whether a folder has a cell's result, and the files that are read in these roles.

    A record is a stranger's until it is copied: one whose form is wrong is no result.
    """
    try:
        record = cell.record(folder)
        return (
            record is not None
            and succeeded(record)
            and all(_is_whole(result, cell) for result in record["results"])
            and (not record["adopted"] or roles <= set(record.get("serves", ())))
        )
    except (KeyError, TypeError, AttributeError, ValueError, artefact.CorruptArtefact):
        return False


def _is_whole(record: Mapping[str, Any], cell: Cell) -> bool:
    """Return whether a result is the cell's and names files of the cell's folder."""
    result = Result.from_json(record)
    for name in result.files.values():
        artefact.below("", name)
    return result.cell == cell.key
