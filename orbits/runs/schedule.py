"""The schedule: cells are computed as soon as those they need are done, with progress bars."""

from __future__ import annotations

import math
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import Any

from tqdm import tqdm

from orbits.runs.cell import REPORT_EVERY, Cell, compute, fail, progress_file, succeeded
from orbits.runs.executors import Execution, WorkerLost
from orbits.runs.result import Result

LATE = "the time was up"
KILLED = "the worker process was killed (out of memory?)"
ATTEMPTS = 2
"""Times that a cell may lose its worker while it is alone with it. Cells of a larger batch are sent
again one by one, since any of them may be to blame."""
LABEL = 56
"""Letters of a running cell that its bar shows, so that 80 columns show how far it is too."""

Records = dict[str, dict[str, Any]]


def run(
    cells: Iterable[Cell], out: Path, execution: Execution, prepare: Callable[[], None] | None
) -> list[Result]:
    """Compute the unfinished cells and return all results in the order of ``cells``."""
    unique = list({cell.key: cell for cell in cells}.values())
    known = {cell.key for cell in unique}
    for cell in unique:
        for role, need in cell.needs.items():
            if need.key not in known:
                raise ValueError(f"{cell.label} needs a {role} cell that is not in the run")
    records = {cell.key: cell.record(out) for cell in unique}
    done = {key: record for key, record in records.items() if record and succeeded(record)}
    waiting = [cell for cell in unique if cell.key not in done]
    if waiting:
        with execution.start(out) as executor:
            _Schedule(waiting, done, out, execution, prepare).run(executor)
    return [Result.from_json(x) for cell in unique for x in done[cell.key]["results"]]


class _Schedule:
    """Cells that wait, run and are done."""

    def __init__(
        self,
        waiting: Sequence[Cell],
        done: Records,
        out: Path,
        execution: Execution,
        prepare: Callable[[], None] | None,
    ) -> None:
        self.waiting, self.done = list(waiting), done
        self.out = out.resolve()  # a worker elsewhere has another working directory
        self.execution, self.prepare = execution, prepare
        self.running: dict[Future, Sequence[Cell]] = {}
        self.attempts: dict[str, int] = {}
        self.end = time.monotonic() + 60 * (execution.minutes or math.inf)

    def run(self, executor: Executor) -> None:
        with _Bars(len(self.waiting) + len(self.done), len(self.done)) as bars:
            while self.waiting or self.running:
                self._submit(executor, bars)
                finished, _ = wait(self.running, REPORT_EVERY, FIRST_COMPLETED)
                bars.show([cell for batch in self.running.values() for cell in batch], self.out)
                for future in finished:
                    for key in self._collect(self.running.pop(future), future):
                        bars.finished(key)

    def _submit(self, executor: Executor, bars: _Bars) -> None:
        if self._late():
            for cell in self.waiting:
                self.done[cell.key] = fail(cell, self.out, LATE, "skipped")
                bars.finished(cell.key)
            self.waiting = []
            return
        able, unable = ready(self.waiting, self.done, self.out)
        for cell in unable:
            bars.finished(cell.key)
        self.waiting = [cell for cell in self.waiting if cell.key not in self.done]
        for batch in self._batches(able):
            if len(self.running) >= self.execution.slots or self._late():
                return
            sent = {cell.key for cell in batch}
            self.waiting = [cell for cell in self.waiting if cell.key not in sent]
            work = executor.submit(_compute_batch, batch, self.out, self.prepare)
            self.running[work] = batch

    def _late(self) -> bool:
        return time.monotonic() > self.end

    def _batches(self, able: Sequence[Cell]) -> Iterable[Sequence[Cell]]:
        """Yield cells to be sent together; one whose worker died is sent alone."""
        suspects = [cell for cell in able if cell.key in self.attempts]
        others = [cell for cell in able if cell.key not in self.attempts]
        yield from ([cell] for cell in suspects)
        size = self.execution.batch
        yield from (others[i : i + size] for i in range(0, len(others), size))

    def _collect(self, batch: Sequence[Cell], future: Future) -> Iterable[str]:
        """Note the results of a batch and yield the keys of the cells that are done."""
        records: Mapping[str, Any] = {}
        why = KILLED
        try:
            records = future.result()
        except WorkerLost as lost:
            why = f"{KILLED}: {lost}" if str(lost) else KILLED
        for cell in batch:
            record = records.get(cell.key) or self._finished(cell)
            if record is None:
                alone = len(batch) == 1
                self.attempts[cell.key] = self.attempts.get(cell.key, 0) + alone
                if self.attempts[cell.key] < ATTEMPTS:
                    self.waiting.append(cell)
                    continue
                record = fail(cell, self.out, why)
            self.done[cell.key] = record
            yield cell.key

    def _finished(self, cell: Cell) -> dict[str, Any] | None:
        """Return the record of a cell that a worker finished before it died with its batch."""
        record = cell.record(self.out)
        return record if record and succeeded(record) else None


def ready(waiting: Iterable[Cell], done: Records, out: Path) -> tuple[list[Cell], list[Cell]]:
    """Split off the cells whose needs are done.

    Returns:
        The cells that can be computed now, and those that never can, because a cell they need
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
                unable.append(cell)
            else:
                able.append(cell)
    return able, unable


_prepared: set[Callable[[], None]] = set()


def _compute_batch(batch: Sequence[Cell], out: Path, prepare: Callable[[], None] | None) -> Records:
    if prepare is not None and prepare not in _prepared:
        prepare()
        _prepared.add(prepare)
    return {cell.key: compute(cell, out) for cell in batch}


class _Bars:
    """One bar for all cells and one for each running cell that tells how far it is."""

    def __init__(self, total: int, done: int) -> None:
        # A log file gets a line now and then, a terminal a moving bar.
        self.interval = 1 if sys.stderr.isatty() else 30
        self.all = tqdm(
            total=total, initial=done, desc="cells", unit="cell", mininterval=self.interval
        )
        self.running: dict[str, tqdm] = {}

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        for bar in (*self.running.values(), self.all):
            bar.close()

    def show(self, cells: Iterable[Cell], out: Path) -> None:
        """Move the bars of running cells to where their progress files say they are."""
        for cell in cells:
            try:
                step, total = map(int, progress_file(out, cell.key).read_text().split())
            except (OSError, ValueError):  # not there yet, or half written
                continue
            if cell.key not in self.running:
                label = textwrap.shorten(cell.label, LABEL, placeholder=" ...")
                self.running[cell.key] = tqdm(
                    total=total, desc=f"  {label}", leave=False, mininterval=self.interval
                )
            bar = self.running[cell.key]
            bar.update(step - bar.n)

    def finished(self, key: str) -> None:
        """Close the bar of a cell and count it."""
        self.all.update()
        if key in self.running:
            self.running.pop(key).close()
