"""Axes of scaling: what a training has more of, and places on them in words."""

from __future__ import annotations

from collections.abc import Iterable

AXES = ("steps", "heads", "sequences")
Place = int | float
"""A place on an axis; only heads may be a fraction."""


def named(axis: str, value: Place) -> str:
    """Return a place on an axis in words."""
    if axis == "sequences" and not value:
        return "new sequences"
    return f"{value:,} {axis if value != 1 else axis[:-1]}"


def fixed(axes: Iterable[str], values: Iterable[Place]) -> str:
    """Return a place on several axes in words."""
    return ", ".join(named(axis, value) for axis, value in zip(axes, values, strict=True))


def shape(heads: Place, head_dim: int) -> tuple[int, int]:
    """Return the heads per block of a width, and the channels of each.

    Args:
        heads: The width, in heads of ``head_dim`` channels; 0.5 is one head of half as many.
        head_dim: Channels per head of the recipe.

    Raises:
        ValueError: No model is so wide.
    """
    if heads >= 1 and heads % 1 == 0:
        return int(heads), head_dim
    channels = round(heads * head_dim, 9) if 0 < heads < 1 else 0  # 0.55 of 40 are 22
    if channels < 2 or channels % 2:
        raise ValueError(
            "heads must be whole numbers, or fractions of one that leave it an even number of its "
            f"{head_dim} channels, such as 0.5; got {heads:g}"
        )
    return 1, int(channels)
