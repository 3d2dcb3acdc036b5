"""Ctrl-C while worker processes start."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold Ctrl-C back: this process sees it afterwards, those that start meanwhile never do.

    A terminal sends it to workers too, and one that is still importing would print a traceback or
    leave its pool waiting for ever. The main process answers for all.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # new processes inherit it
    here = threading.current_thread() is threading.main_thread()
    seen: list[int] = []
    if here:  # another thread, whose mask is its own, may be the one that gets the signal
        handler = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        yield
    finally:
        if here:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if seen:
            signal.raise_signal(signal.SIGINT)
