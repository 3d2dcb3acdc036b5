"""The memory allocator: new pages for freed blocks cost a tenth of a small step, or more."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_NEVER = -1
_LARGEST = 32 * 2**20
"""The largest threshold glibc takes; larger blocks still go back when they are freed."""


def keep_freed_memory() -> bool:
    """Keep freed memory in this process, for the next step's tensors of the same sizes.

    By default glibc gives large blocks back to the system, which clears each of their pages when
    they are asked for again. Values do not change, and what a process holds is its peak.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, _NEVER))
