"""Content-addressed cells: the units of work of a benchmark, run in parallel and resumed.

A cell is a kind, a plain configuration and the cells it needs. Its key is the hash of all three,
its folder is ``OUT/cells/KEY`` and it is done when ``cell.json`` is there and intact. A run that
was killed finishes by running again: done cells are skipped, an unfinished one starts afresh.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.connection import wait as wait_for_sentinels
from pathlib import Path
from typing import Any

from tqdm import tqdm

from orbits import artefacts
from orbits.manifest import manifest
from symreg.result_rows import SCHEMA

VERSION = 1
"""Raised when cells computed by older code must not be reused."""

RECORD = "cell.json"
REPORT_EVERY = 0.5
"""Seconds between two progress messages of a cell."""

Progress = Callable[[int, int], None]
Compute = Callable[[dict[str, Any], Path, dict[str, Path], Progress], dict[str, Any]]
"""Maps (config, folder, folders of the needed cells by role, progress) to a result line."""


@dataclass(frozen=True)
class Cell:
    """One unit of work.

    Attributes:
        kind: Which function of the benchmark computes it.
        config: Plain data that determines the result.
        needs: Cells whose folders it reads, by role.
        label: What a progress bar shows.
    """

    kind: str
    config: Mapping[str, Any]
    needs: Mapping[str, Cell] = field(default_factory=dict)
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
                artefacts.sha256(folder / name) == digest
                for name, digest in record["sha256"].items()
            )
        except (FileNotFoundError, artefacts.CorruptArtefact):
            return None
        return record if intact else None


class WorkerDied(RuntimeError):
    """A worker process ended without an answer, for example for lack of memory."""


def run(
    cells: Iterable[Cell],
    out: Path,
    compute: Mapping[str, Compute],
    *,
    jobs: int,
    initialise: Callable[[], None],
) -> list[dict[str, Any]]:
    """Compute what is not done yet and return all result lines in the order of ``cells``.

    Args:
        cells: The cells; those they need must be among them, earlier ones first.
        out: The results folder.
        compute: The function of each kind; importable, since workers are new processes.
        jobs: Number of worker processes.
        initialise: Called once in each worker.

    Raises:
        ValueError: A cell needs one that is not among ``cells``.
        WorkerDied: A worker was killed; what was done stays done.
    """
    unique = list({cell.key: cell for cell in cells}.values())
    known = {cell.key for cell in unique}
    for cell in unique:
        for role, need in cell.needs.items():
            if need.key not in known:
                raise ValueError(f"{cell.label} needs a {role} cell that is not in the run")
    records = {cell.key: cell.record(out) for cell in unique}
    done = {key: record for key, record in records.items() if record and _succeeded(record)}
    waiting = [cell for cell in unique if cell.key not in done]
    if waiting:
        _run_waiting(waiting, done, out, compute, jobs, initialise, len(unique))
    return [done[cell.key]["line"] for cell in unique]


def _succeeded(record: dict[str, Any]) -> bool:
    return record["line"]["status"] == "ok"


def _run_waiting(
    waiting: list[Cell],
    done: dict[str, dict[str, Any]],
    out: Path,
    compute: Mapping[str, Compute],
    jobs: int,
    initialise: Callable[[], None],
    total: int,
) -> None:
    context = multiprocessing.get_context("spawn")
    messages = context.Queue()
    with ProcessPoolExecutor(
        min(jobs, len(waiting)),
        mp_context=context,
        initializer=_start_worker,
        initargs=(initialise, messages),
    ) as pool:
        running: dict[Future, Cell] = {}
        bars = _Bars(total, len(done), messages)
        try:
            while waiting or running:
                for cell in [c for c in waiting if all(n.key in done for n in c.needs.values())]:
                    if len(running) >= jobs:
                        break
                    waiting.remove(cell)
                    broken = [n for n in cell.needs.values() if not _succeeded(done[n.key])]
                    if broken:
                        error = f"needs {broken[0].label}, which failed"
                        done[cell.key] = _finish(cell, out, None, error, 0.0)
                        bars.finished()
                        continue
                    future = pool.submit(_work, compute[cell.kind], cell, out)
                    running[future] = cell
                finished, _ = wait(running, timeout=REPORT_EVERY, return_when=FIRST_COMPLETED)
                bars.drain()
                for future in finished:
                    cell = running.pop(future)
                    done[cell.key] = future.result()
                    bars.finished(cell.key)
        except BrokenProcessPool:
            raise WorkerDied(
                "a worker process was killed (out of memory?); run the same command again to resume"
            ) from None
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            bars.close()


_messages: Any = None
"""In a worker: the queue of progress messages. A queue can only be handed over at its start."""


def _start_worker(initialise: Callable[[], None], messages: Any) -> None:
    """Prepare a worker, and end it should the main process be killed.

    An orphan would go on with its cell and collide with the run that resumes.
    """
    global _messages
    _messages = messages
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process answers Ctrl-C for all
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait_for_sentinels([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    initialise()


def _work(compute: Compute, cell: Cell, out: Path) -> dict[str, Any]:
    """Compute one cell in a worker: an exception becomes a failed result line."""
    folder = cell.folder(out)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    last = 0.0

    def progress(step: int, total: int) -> None:
        nonlocal last
        if step >= total or time.monotonic() - last > REPORT_EVERY:
            last = time.monotonic()
            _messages.put((cell.key, cell.label, step, total))

    start = time.process_time()
    line, error = None, None
    try:
        needs = {role: need.folder(out) for role, need in cell.needs.items()}
        line = compute(dict(cell.config), folder, needs, progress)
    except Exception as problem:
        (folder / "error.txt").write_text(traceback.format_exc())
        error = f"{type(problem).__name__}: {problem}"
    return _finish(cell, out, line, error, time.process_time() - start)


def _finish(
    cell: Cell, out: Path, line: dict[str, Any] | None, error: str | None, cpu_s: float
) -> dict[str, Any]:
    line = {
        "schema": SCHEMA,
        "cell": cell.key,
        "status": "failed" if error else "ok",
        "error": error,
        "cpu_s": round(cpu_s, 2),
        "metrics": {},
        # What a failed line must still say for its row to be counted.
        "task": cell.config.get("task"),
        "kind": cell.config.get("line_kind"),
        "row": cell.config.get("row"),
        "engine": cell.config.get("engine_version"),
        "seed": cell.config.get("seed"),
        "manifest": manifest(cell.config, seed=cell.config.get("seed")),
        **(line or {}),
    }
    folder = cell.folder(out)
    record = {
        "kind": cell.kind,
        "line": line,
        "sha256": {
            path.name: artefacts.sha256(path)
            for path in sorted(folder.glob("*"))
            if path.is_file() and path.name != RECORD
        },
    }
    artefacts.save_record(folder / RECORD, record)
    return record


class _Bars:
    """One bar for all cells and one for each running cell."""

    def __init__(self, total: int, done: int, messages: Any) -> None:
        self.messages = messages
        # A log file gets a line now and then, a terminal a moving bar.
        self.interval = 1 if sys.stderr.isatty() else 30
        self.all = tqdm(
            total=total, initial=done, desc="cells", unit="cell", mininterval=self.interval
        )
        self.running: dict[str, tqdm] = {}

    def drain(self) -> None:
        while not self.messages.empty():
            key, label, step, total = self.messages.get()
            if key not in self.running:
                self.running[key] = tqdm(
                    total=total, desc=f"  {label}", leave=False, mininterval=self.interval
                )
            bar = self.running[key]
            bar.update(step - bar.n)

    def finished(self, key: str | None = None) -> None:
        self.all.update()
        if key in self.running:
            self.running.pop(key).close()

    def close(self) -> None:
        for bar in (*self.running.values(), self.all):
            bar.close()
