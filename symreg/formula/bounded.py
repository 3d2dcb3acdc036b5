"""Limits on a function's time and memory: it runs in a child process that can be killed.

Computer algebra can run without end on a short formula, or eat all memory, inside one operation
that no check in between could stop.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from symreg.formula.thresholds import TIME_LIMIT

Result = TypeVar("Result")
WALL_LIMIT = 10  # in multiples of the limit on CPU time; only a child that sleeps should meet it
MEMORY_LIMIT = 2 * 1024**3  # bytes on top of what the parent holds


class OutOfLimits(Exception):
    """The function needed more time or memory than its limits allow."""


def call(function: Callable[[], Result], seconds: float = TIME_LIMIT) -> Result:
    """Return ``function()`` computed in a forked child, or raise its ValueError or OutOfLimits.

    The child shares the parent's memory at the time of the call, so only the result is pickled.
    Import what the function needs beforehand, or every child imports it again. ``seconds`` limits
    CPU time, rounded up to whole seconds.
    """
    receive, send = multiprocessing.Pipe(duplex=False)
    child = os.fork()  # multiprocessing.Process would refuse inside a worker of a Pool
    if child == 0:
        _answer(function, send, math.ceil(seconds))
    send.close()
    try:
        result = receive.recv() if receive.poll(WALL_LIMIT * seconds) else None
    except EOFError:  # the child died of a limit
        result = None
    finally:
        receive.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if result is None:
        raise OutOfLimits(f"more than {seconds:g} s or {MEMORY_LIMIT / 1024**3:g} GB")
    value, error = result
    if error is not None:
        raise error
    return value


def _answer(function: Callable[[], Result], send: Connection, seconds: int) -> None:
    """Send (result, error) from the child and end it, without a way back into the parent's code."""
    try:
        _limit(seconds)
        try:
            send.send((function(), None))
        except (MemoryError, RecursionError):
            pass
        except Exception as error:
            send.send((None, error))
    finally:
        os._exit(0)


def _limit(seconds: int) -> None:
    """Cap this process's CPU time and address space; without /proc there is no memory limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with contextlib.suppress(OSError, ValueError):
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_LIMIT, hard))
