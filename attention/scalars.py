"""Checks of sizes and numbers, each with a one-line error; no torch."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_size(label: str, size: Any, least: int = 1) -> None:
    """Refuse a size that is not a whole number, or is below ``least``, with a ValueError."""
    if isinstance(size, bool) or not isinstance(size, Integral):
        raise ValueError(f"{label} must be a whole number, got {size!r}")
    if size < least:
        raise ValueError(f"{label} must be at least {least}, got {size}")


def check_positive(label: str, value: Any) -> None:
    """Refuse a value that is not a positive and finite number, with a ValueError."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{label} must be a positive number, got {value!r}")
