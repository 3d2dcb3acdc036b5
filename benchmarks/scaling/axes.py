"""Axes of scaling: what a training has more of, and places on them in words."""

from __future__ import annotations

from collections.abc import Iterable

AXES = ("steps", "heads", "sequences")


def named(axis: str, value: int) -> str:
    """Return a place on an axis in words."""
    if axis == "sequences" and not value:
        return "new sequences"
    return f"{value:,} {axis if value != 1 else axis[:-1]}"


def fixed(axes: Iterable[str], values: Iterable[int]) -> str:
    """Return a place on several axes in words."""
    return ", ".join(named(axis, value) for axis, value in zip(axes, values, strict=True))
