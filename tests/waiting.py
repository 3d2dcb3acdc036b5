"""Waiting for other processes: as long as it takes, unless they hang."""

import time
from collections.abc import Callable

import pytest

LOOKS = 6000


def wait_until(happened: Callable[[], object], what: str) -> None:
    """Look every tenth of a second whether something has happened; give up on what hangs."""
    for _ in range(LOOKS):
        if happened():
            return
        time.sleep(0.1)
    pytest.fail(f"{what}: not after {LOOKS} looks")
