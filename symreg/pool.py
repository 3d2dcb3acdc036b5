"""Computing cells in processes of this machine, with a progress bar for each."""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for_sentinels
from pathlib import Path
from typing import Any

from tqdm import tqdm

from orbits import interrupts
from symreg.cells import Cell, Compute, compute_cell, fail, ready

REPORT_EVERY = 0.5
"""Seconds between two progress messages of a cell."""


KILLED = "the worker process was killed (out of memory?)"


def run(
    waiting: list[Cell],
    done: dict[str, dict[str, Any]],
    out: Path,
    compute: Mapping[str, Compute],
    initialise: Callable[[], None],
    jobs: int,
) -> None:
    """Compute ``waiting`` and add the records to ``done``; see :func:`symreg.cells.run`.

    A worker that is killed takes the whole pool with it, and does not say which cell it was at.
    So each of the cells that were running gets the machine to itself; one that kills its worker
    again is recorded as failed.
    """
    waiting = list(waiting)
    work = functools.partial(_work, out=out, compute=compute, initialise=initialise)
    bars = _Bars(len(waiting) + len(done), len(done))
    try:
        while waiting:
            for suspect in _run_until_killed(waiting, done, out, work, jobs, bars):
                for culprit in _run_until_killed([suspect], done, out, work, 1, bars):
                    done[culprit.key] = fail(culprit, out, KILLED)
                    bars.finished(culprit.key)
    finally:
        bars.close()


def _run_until_killed(
    waiting: list[Cell],
    done: dict[str, dict[str, Any]],
    out: Path,
    work: Callable[[Cell], dict[str, Any]],
    jobs: int,
    bars: _Bars,
) -> list[Cell]:
    """Move cells from ``waiting`` to ``done``; return those that ran when a worker was killed."""
    context = multiprocessing.get_context("spawn")
    messages = context.Queue()  # not shared with a later pool: a killed worker may hold its lock
    running: dict[Future, Cell] = {}
    with ProcessPoolExecutor(
        min(jobs, len(waiting)),
        mp_context=context,
        initializer=_start_worker,
        initargs=(messages,),
    ) as workers:
        try:
            while waiting or running:
                able, unable = ready(waiting, done, out)
                for cell in unable:
                    waiting.remove(cell)
                    bars.finished()
                for cell in able[: jobs - len(running)]:
                    with interrupts.held_back():
                        running[workers.submit(work, cell)] = cell
                    waiting.remove(cell)
                finished, _ = wait(running, timeout=REPORT_EVERY, return_when=FIRST_COMPLETED)
                bars.drain(messages)
                for future in finished:
                    done[running[future].key] = future.result()
                    bars.finished(running.pop(future).key)
        except BrokenProcessPool:
            pass
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return list(running.values())


_messages: Any = None
"""In a worker: the queue of progress messages. A queue can only be handed over at its start."""


def _start_worker(messages: Any) -> None:
    """Prepare a worker, and end it should the main process be killed.

    An orphan would go on with its cell and collide with the run that resumes.
    """
    global _messages
    _messages = messages
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait_for_sentinels([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@functools.cache
def _prepare(initialise: Callable[[], None]) -> None:
    """Call ``initialise`` once in this worker: with a cell, so that what it raises is reported."""
    initialise()


def _work(
    cell: Cell, out: Path, compute: Mapping[str, Compute], initialise: Callable[[], None]
) -> dict[str, Any]:
    _prepare(initialise)
    last = 0.0

    def progress(step: int, total: int) -> None:
        nonlocal last
        if step >= total or time.monotonic() - last > REPORT_EVERY:
            last = time.monotonic()
            _messages.put((cell.key, cell.label, step, total))

    return compute_cell(compute[cell.kind], cell, out, progress)


class _Bars:
    """One bar for all cells and one for each running cell."""

    def __init__(self, total: int, done: int) -> None:
        # A log file gets a line now and then, a terminal a moving bar.
        self.interval = 1 if sys.stderr.isatty() else 30
        self.all = tqdm(
            total=total, initial=done, desc="cells", unit="cell", mininterval=self.interval
        )
        self.running: dict[str, tqdm] = {}

    def drain(self, messages: Any) -> None:
        while not messages.empty():
            key, label, step, total = messages.get()
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
