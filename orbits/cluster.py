"""Independent tasks: in this process, in worker processes, or on a Dask cluster.

Dask is the one optional engine. Other schedulers need no engine: their jobs run pieces of a
dataset with ``python -m orbits generate --shards``.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from orbits import interrupts

Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Maps (task, items) to the results, in the order in which they are done."""

_LOST = "worker processes died, perhaps for lack of memory; run the same command again to go on"


@contextlib.contextmanager
def engine(workers: int = 1, dask: str | None = None) -> Iterator[Run]:
    """Yield what runs a task for many items.

    The task must be an importable function, or a partial of one.

    Args:
        workers: Processes on this machine; 1 computes here.
        dask: Address of a Dask scheduler, or ``local`` for a local cluster of ``workers``.

    Raises:
        ValueError: ``workers`` is below 1, or Dask is asked for and not installed.
        OSError: The scheduler cannot be reached, or (when running) workers died.
    """
    if workers < 1:
        raise ValueError(f"the number of workers must be at least 1, got {workers}")
    with contextlib.ExitStack() as stack:
        if dask is not None:
            yield functools.partial(_on_dask, _client(stack, workers, dask))
        elif workers > 1:
            # Fresh processes: a fork would copy locks that other threads hold.
            context = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(workers, context, initializer=_start_worker)
            stack.callback(pool.shutdown, cancel_futures=True)
            yield functools.partial(_in_processes, pool)
        else:
            yield map


def _in_processes(
    pool: ProcessPoolExecutor, task: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[Any]:
    try:
        with interrupts.held_back():
            futures = [pool.submit(task, item) for item in items]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        raise ChildProcessError(_LOST) from None


def _start_worker() -> None:
    """End when the parent is killed, instead of waiting for ever."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _client(stack: contextlib.ExitStack, workers: int, address: str) -> Any:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ValueError("Dask is not installed; pip install -e '.[cluster]'") from None
    if address != "local":
        return stack.enter_context(Client(address, timeout=10))
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )
    return stack.enter_context(Client(stack.enter_context(cluster)))


def _on_dask(client: Any, task: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    from distributed import KilledWorker, as_completed

    try:
        for future in as_completed(client.map(task, list(items), pure=False)):
            yield future.result()
    except KilledWorker:
        raise ChildProcessError(_LOST) from None
