"""The Hugging Face hub when there is no network: its caches still serve, and nothing waits."""

from __future__ import annotations

import contextlib
import urllib.error
import urllib.request
from collections.abc import Iterator

SECONDS = 10.0
"""How long to wait for the hub's first answer."""


@contextlib.contextmanager
def offline_if_unreachable() -> Iterator[None]:
    """Let the hub's libraries use their caches alone if the hub does not answer.

    What is not cached then fails at once; by themselves they retry each request for 23 seconds.
    """
    try:
        from datasets import config
        from huggingface_hub import constants
    except ModuleNotFoundError:  # said where they are needed
        yield
        return
    before = constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    if not any(before) and not reachable(constants.ENDPOINT):
        constants.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE = before


def reachable(address: str, seconds: float = SECONDS) -> bool:
    """Return whether a web server answers, be it with an error."""
    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=seconds):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
