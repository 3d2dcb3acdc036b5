"""Content-addressed cells: the units of work of a leaderboard or benchmark, parallel and resumed.

A cell is a kind, a plain configuration and the cells it needs. Its key is the hash of all three,
its folder is ``OUT/cells/KEY`` and it is done when ``cell.json`` is there and intact. A run that
was killed finishes by running again: done cells are skipped, an unfinished one starts afresh.
Cells run in processes of this machine, or anywhere that sees the folder (:mod:`symreg.slurm`).
"""

from __future__ import annotations

import contextlib
import fcntl
import resource
import shutil
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from orbits import artefacts, locks
from orbits.manifest import manifest
from symreg.result_rows import SCHEMA

VERSION = 4
"""Raised when cells computed by older code must not be reused."""

RECORD = "cell.json"

Progress = Callable[[int, int], None]
Compute = Callable[[dict[str, Any], Path, dict[str, Path], Progress], dict[str, Any]]
"""Maps (config, folder, needed folders and input files by role, progress) to a result line."""


class Skipped(Exception):
    """What a cell needs cannot be reached from here, say a download: the next run tries again."""


@dataclass(frozen=True)
class Cell:
    """One unit of work.

    Attributes:
        kind: Which function of the benchmark computes it.
        config: Plain data that determines the result.
        needs: Cells whose folders it reads, by role.
        inputs: Files that it reads, by role. Where they lie does not determine the result;
            their checksums do, so those belong into ``config``.
        label: What a progress bar shows.
    """

    kind: str
    config: Mapping[str, Any]
    needs: Mapping[str, Cell] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)
    label: str = ""

    @cached_property
    def key(self) -> str:
        """The content address."""
        needs = {role: cell.key for role, cell in self.needs.items()}
        return artefacts.key(
            {"version": VERSION, "kind": self.kind, "config": dict(self.config), "needs": needs}
        )

    def folder(self, out: Path) -> Path:
        """Return where the cell's files are."""
        return out / "cells" / self.key

    def record(self, out: Path) -> dict[str, Any] | None:
        """Return the finished record, or None; one with a damaged file counts as unfinished."""
        folder = self.folder(out)
        try:
            record = artefacts.load_record(folder / RECORD)
            intact = all(
                artefacts.sha256(artefacts.below(folder, name)) == digest
                for name, digest in record["sha256"].items()
            )
        except (FileNotFoundError, artefacts.CorruptArtefact):
            return None
        return record if intact else None


def run(
    cells: Iterable[Cell],
    out: Path,
    compute: Mapping[str, Compute],
    *,
    jobs: int,
    initialise: Callable[[], None],
    partition: str | None = None,
) -> list[dict[str, Any]]:
    """Compute what is not done yet and return all result lines in the order of ``cells``.

    Args:
        cells: The cells; those they need must be among them, earlier ones first.
        out: The results folder.
        compute: The function of each kind; importable, since workers are new processes.
        jobs: Number of worker processes on this machine.
        initialise: Called once in each worker.
        partition: The Slurm partition that computes instead; see :mod:`symreg.slurm`.

    Raises:
        ValueError: A cell needs one that is not among ``cells``.
        RuntimeError: A job of ``partition`` died; what was done stays done.
    """
    unique = list({cell.key: cell for cell in cells}.values())
    known = {cell.key for cell in unique}
    for cell in unique:
        for role, need in cell.needs.items():
            if need.key not in known:
                raise ValueError(f"{cell.label} needs a {role} cell that is not in the run")
    records = {cell.key: cell.record(out) for cell in unique}
    done = {key: record for key, record in records.items() if record and succeeded(record)}
    waiting = [cell for cell in unique if cell.key not in done]
    if waiting and partition is not None:
        from symreg import slurm

        slurm.run(waiting, done, out, compute, initialise, partition)
    elif waiting:
        from symreg import pool

        pool.run(waiting, done, out, compute, initialise, jobs)
    return [done[cell.key]["line"] for cell in unique]


def succeeded(record: Mapping[str, Any]) -> bool:
    """Tell whether a finished cell has a result."""
    return record["line"]["status"] == "ok"


def ready(
    waiting: Iterable[Cell], done: dict[str, dict[str, Any]], out: Path
) -> tuple[list[Cell], list[Cell]]:
    """Split off the cells whose needs are done.

    Returns:
        The cells that can be computed now, and those that never can, because what they need
        failed: these are recorded as failed here and added to ``done``.
    """
    able: list[Cell] = []
    unable: list[Cell] = []
    for cell in waiting:
        if all(need.key in done for need in cell.needs.values()):
            failed = [need for need in cell.needs.values() if not succeeded(done[need.key])]
            if failed:
                error = f"needs {failed[0].label}, which has no result"
                done[cell.key] = fail(cell, out, error)
            (unable if failed else able).append(cell)
    return able, unable


def compute_cell(compute: Compute, cell: Cell, out: Path, progress: Progress) -> dict[str, Any]:
    """Compute one cell and return its record: an exception becomes a failed or skipped line.

    Where another process is at the same cell, say a job that outlived the run that submitted it,
    this one waits for it and returns its result.
    """
    with _alone(cell, out):
        record = cell.record(out)
        return record if record and succeeded(record) else _compute(compute, cell, out, progress)


def adopt(cell: Cell, line: Mapping[str, Any], out: Path) -> None:
    """Record a cell as done by its result line, which was computed elsewhere; it has no files."""
    folder = cell.folder(out)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _save(cell, out, line, adopted=True)


def fail(cell: Cell, out: Path, error: str) -> dict[str, Any]:
    """Record a cell that could not be computed as failed, and return the record."""
    return _finish(cell, out, None, "failed", error, 0.0)


@contextlib.contextmanager
def _alone(cell: Cell, out: Path) -> Iterator[None]:
    """Keep other processes, on any machine that sees the folder, out of the cell's folder."""
    out.mkdir(parents=True, exist_ok=True)
    with locks.open_lock(out / ".cells.lock") as file:
        # One byte stands for each cell. A lock of this kind ends with the process that took it,
        # even where a child, which a search may have, lives on.
        with contextlib.suppress(OSError):  # the run has warned of a disk without locks
            fcntl.lockf(file, fcntl.LOCK_EX, 1, int(cell.key, 16) >> 1)
        yield


def _compute(compute: Compute, cell: Cell, out: Path, progress: Progress) -> dict[str, Any]:
    folder = cell.folder(out)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start = _cpu_seconds()
    line, status, error = None, "ok", None
    try:
        needs = {role: need.folder(out) for role, need in cell.needs.items()}
        line = compute(dict(cell.config), folder, {**needs, **cell.inputs}, progress)
    except Skipped as reason:
        status, error = "skipped", str(reason)
    except Exception as problem:
        (folder / "error.txt").write_text(traceback.format_exc())
        status, error = "failed", f"{type(problem).__name__}: {problem}"
    return _finish(cell, out, line, status, error, _cpu_seconds() - start)


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _finish(
    cell: Cell,
    out: Path,
    line: dict[str, Any] | None,
    status: str,
    error: str | None,
    cpu_s: float,
) -> dict[str, Any]:
    line = {
        "schema": SCHEMA,
        "cell": cell.key,
        "status": status,
        "error": error,
        "cpu_s": round(cpu_s, 2),
        "metrics": {},
        # What a line without a result must still say for its row to be counted.
        "task": cell.config.get("task"),
        "kind": cell.config.get("line_kind"),
        "row": cell.config.get("row"),
        "engine": cell.config.get("engine_version"),
        "seed": cell.config.get("seed"),
        "manifest": manifest(cell.config, seed=cell.config.get("seed")),
        **(line or {}),
    }
    return _save(cell, out, line)


def _save(
    cell: Cell, out: Path, line: Mapping[str, Any], *, adopted: bool = False
) -> dict[str, Any]:
    folder = cell.folder(out)
    record = {
        "adopted": adopted,
        "kind": cell.kind,
        "line": dict(line),
        "sha256": {
            path.name: artefacts.sha256(path)
            for path in sorted(folder.glob("*"))
            if path.is_file() and path.name != RECORD
        },
    }
    artefacts.save_record(folder / RECORD, record)
    return record
