"""Executors: where work is done. In this process, in processes, through Slurm, or on Dask.

Each is a :class:`concurrent.futures.Executor`, so that whoever submits work need not know which.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, as_completed
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pebble

from orbits.runs import artefact, interrupts

EXECUTORS = ("processes", "here", "slurm", "dask")
SLURM_MINUTES = 240
SLURM_JOBS = 64
"""Jobs at once."""
SLURM_BATCH = 50
"""Pieces of work per job: a search takes seconds, and a job should take minutes."""
WATCH_SECONDS = 1.0
"""Time between two looks at a cluster's number of workers."""
FORGET_LOST = {"distributed.deploy.lost-worker-timeout": "2s"}
"""Time for which Dask holds the place of a worker that is lost."""
POLL_SECONDS = 0.5
CLOSING = "cannot schedule new futures after shutdown"
"""Answer of a Dask worker to work that reaches it while it closes."""


class WorkerLost(Exception):
    """The process that did some work is gone: killed, out of memory, or its node was taken."""


@dataclass(frozen=True)
class Execution:
    """The executor of the work, and how much of it runs at once.

    Attributes:
        executor: ``processes`` of this machine, ``here`` in this process, ``slurm`` through
            submitit, or ``dask``.
        workers: Pieces of work at once; None for one per core, at most 8.
        partition: Slurm partition.
        scheduler: Address of a Dask scheduler; None starts workers on this machine.
        minutes: No cell is started after as many; None for no end.

    Raises:
        ValueError: A field does not fit.
    """

    executor: str = "processes"
    workers: int | None = None
    partition: str | None = None
    scheduler: str | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise ValueError(f"--executor must be {' | '.join(EXECUTORS)}, got {self.executor!r}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"--workers must be at least 1, got {self.workers}")
        if self.minutes is not None and not self.minutes > 0:
            raise ValueError(f"--minutes must be positive, got {self.minutes:g}")
        for name, needed in (("partition", "slurm"), ("scheduler", "dask")):
            if getattr(self, name) is not None and self.executor != needed:
                raise ValueError(f"--{name} goes with --executor {needed} only")

    @property
    def slots(self) -> int:
        """Pieces of work at once."""
        if self.executor == "slurm" and self.workers is None:
            return SLURM_JOBS
        return self.workers or min(8, cores())

    @property
    def batch(self) -> int:
        """Small pieces of work that are sent together."""
        return SLURM_BATCH if self.executor == "slurm" else 1

    @contextlib.contextmanager
    def start(self, folder: Path, jobs: Path | None = None) -> Iterator[Executor]:
        """Yield the executor; its futures raise :class:`WorkerLost` where a worker died.

        Args:
            folder: Folder in which the work writes; half-written files of stopped workers
                are removed.
            jobs: Folder for Slurm's logs and pickles; by default ``folder/slurm``.

        Raises:
            ValueError: Dask or submitit is asked for and not installed, or the address is none.
            OSError: The Dask scheduler cannot be reached.
        """
        make = {"here": _Here, "processes": _Processes, "slurm": _Slurm, "dask": _Dask}
        executor: Any = make[self.executor](self, jobs or folder / "slurm")
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=True, cancel_futures=True)
            artefact.remove_abandoned(folder)
            raise
        executor.shutdown(wait=True)


def cores() -> int:
    """Return the number of cores that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return count or 1


def unordered(
    executor: Executor, function: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[Any]:
    """Yield a function's result for each item, in the order in which they are done."""
    if isinstance(executor, _Here):  # one after the other, as they are asked for
        yield from map(function, items)
        return
    futures = [executor.submit(function, item) for item in items]
    for future in as_completed(futures):
        yield future.result()


class _Here(Executor):
    """Executor that does work when it is submitted."""

    def __init__(self, execution: Execution, jobs: Path) -> None:
        pass

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _Translated(Executor):
    """An executor whose pool has exceptions of its own for a worker that died."""

    lost: tuple[type[BaseException], ...] = ()

    def send(self, function: Callable[..., Any], *args: Any) -> Future:
        raise NotImplementedError

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        future.set_running_or_notify_cancel()

        def copy(done: Future) -> None:
            if done.cancelled():
                future.set_exception(WorkerLost("the work was cancelled"))
            elif isinstance(error := done.exception(), self.lost):
                future.set_exception(WorkerLost(str(error)))
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(done.result())

        with interrupts.held_back():  # a worker may be started by this
            self.send(_call, function, args, kwargs).add_done_callback(copy)
        return future


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


class _Processes(_Translated):
    """Fresh processes of this machine: a fork would copy locks that other threads hold.

    A worker that is killed fails its own work alone (``concurrent.futures`` gives up the whole
    pool), and is replaced.
    """

    lost = (pebble.ProcessExpired,)

    def __init__(self, execution: Execution, jobs: Path) -> None:
        # Its start lets Ctrl-C through again, which is held back while workers start.
        resource_tracker.ensure_running()
        self.pool = pebble.ProcessPool(
            max_workers=execution.slots,
            initializer=_follow_parent,
            context=multiprocessing.get_context("spawn"),
        )

    def send(self, function: Callable[..., Any], *args: Any) -> Future:
        return self.pool.schedule(function, args=args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            self.pool.stop()
        else:
            self.pool.close()
        self.pool.join()


def _follow_parent() -> None:
    """End this worker should the main process be killed.

    An orphan would go on with its work and collide with the run that resumes.
    """

    def follow() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


class _Dask(_Translated):
    """Workers of a Dask cluster, or of one that is started on this machine."""

    def __init__(self, execution: Execution, jobs: Path) -> None:
        try:
            import dask
            from distributed import Client, KilledWorker, LocalCluster
        except ImportError:
            raise ValueError("Dask is not installed; pip install -e '.[cluster]'") from None
        self.lost = (KilledWorker, asyncio.CancelledError, CancelledError)
        self.stack = contextlib.ExitStack()
        address: Any = execution.scheduler
        if address is None:
            self.stack.enter_context(dask.config.set(FORGET_LOST))
            address = self.stack.enter_context(
                LocalCluster(
                    n_workers=execution.slots,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            )
            self._replace(address, execution.slots)
        self.client = self.stack.enter_context(Client(address, timeout=10))
        self.remote: set[Any] = set()  # Dask drops the work of a future that nobody holds

    def _replace(self, cluster: Any, workers: int) -> None:
        """Keep the number of workers: Dask replaces none that died while it was starting.

        Work that kills its worker can reach one before its start is over, and where all are gone
        what waits would wait for ever.
        """
        closed = threading.Event()

        def watch() -> None:
            while not closed.wait(WATCH_SECONDS):
                cluster.scale(workers)

        self.stack.callback(closed.set)  # before the cluster is closed
        threading.Thread(target=watch, daemon=True).start()

    def send(self, function: Callable[..., Any], *args: Any) -> Future:
        # Not Dask's own executor: its future never ends where a result is lost with its worker and
        # the work, done again, is lost too.
        future: Future = Future()
        remote = self.client.submit(function, *args, pure=False)
        self.remote.add(remote)

        def copy(remote: Any) -> None:
            try:
                future.set_result(remote.result())
            except BaseException as error:  # that of the work, or of Dask
                closing = isinstance(error, RuntimeError) and str(error) == CLOSING
                future.set_exception(WorkerLost("its worker was closing") if closing else error)
            self.remote.discard(remote)

        remote.add_done_callback(copy)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            self.client.cancel(list(self.remote), force=True)
        while wait and not cancel_futures and self.remote:
            time.sleep(POLL_SECONDS)
        self.stack.close()


class _Slurm(_Translated):
    """Slurm jobs through submitit; where there is no Slurm, processes of this machine."""

    lost = (WorkerLost,)

    def __init__(self, execution: Execution, jobs: Path) -> None:
        try:
            import submitit
        except ImportError:
            raise ValueError("submitit is not installed; pip install -e '.[cluster]'") from None
        self.executor = submitit.AutoExecutor(folder=jobs)
        self.executor.update_parameters(
            name="orrery",
            timeout_min=SLURM_MINUTES,
            cpus_per_task=1,
            slurm_partition=execution.partition,
        )
        if self.executor.cluster != "slurm":
            print("there is no Slurm: submitit runs the jobs on this machine", file=sys.stderr)
        self.jobs: dict[Any, Future] = {}
        self.closed = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def send(self, function: Callable[..., Any], *args: Any) -> Future:
        future: Future = Future()
        self.jobs[self.executor.submit(function, *args)] = future
        return future

    def _watch(self) -> None:
        while not self.closed.is_set():
            for job in [job for job in list(self.jobs) if job.done()]:
                future = self.jobs.pop(job)
                try:
                    future.set_result(job.result())
                except Exception as error:  # whatever the cluster or the machine did to the job
                    reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
                    future.set_exception(WorkerLost(f"job {job.job_id} died: {reason[0]}"))
            time.sleep(POLL_SECONDS)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for job in list(self.jobs):
                job.cancel(check=False)  # the reason to stop counts, not what scancel says
        while wait and not cancel_futures and self.jobs:
            time.sleep(POLL_SECONDS)
        self.closed.set()
