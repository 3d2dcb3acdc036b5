"""Ctrl-C while worker processes start."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold Ctrl-C back: this process sees it afterwards, those that start meanwhile never do.

    A terminal sends it to workers too, and one that is still importing would print a traceback or
    leave its pool waiting for ever. The main process answers for all.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
