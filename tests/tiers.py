"""Which values of a parameter the quick tier takes; the gate takes the others."""

from collections.abc import Hashable, Iterable

import pytest

FULL = pytest.mark.full


def corners(values: Iterable[Hashable], *quick: Hashable) -> list[object]:
    """Return every value for ``parametrize``, those that are not named marked ``full``.

    A tuple holds the values of several parameters.
    """
    values = list(values)
    if unknown := set(quick) - set(values):
        raise ValueError(f"not among the values: {', '.join(sorted(map(str, unknown)))}")
    return [
        x if x in quick else pytest.param(*x if isinstance(x, tuple) else (x,), marks=FULL)
        for x in values
    ]
