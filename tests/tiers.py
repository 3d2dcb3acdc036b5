"""Which values of a parameter the quick tier takes; the gate takes the others."""

from collections.abc import Iterable

import pytest


def corners(values: Iterable[str], *quick: str) -> list[object]:
    """Return every value for ``parametrize``, those that are not named marked ``full``."""
    values = list(values)
    if unknown := set(quick) - set(values):
        raise ValueError(f"not among the values: {', '.join(sorted(unknown))}")
    return [x if x in quick else pytest.param(x, marks=pytest.mark.full) for x in values]
