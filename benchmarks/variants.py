"""Attention variants and linear mixers as the rows of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import attention


@dataclass(frozen=True)
class Variant:
    """One attention row: a variant or a linear mixer, its arguments and its schedule."""

    attention: str
    p: float | None = None
    sharpen_after: int = 0

    @property
    def label(self) -> str:
        """Return the name shown in tables."""
        name = attention.label(self.attention, **({} if self.p is None else {"p": self.p}))
        return f"{name}, off to step {self.sharpen_after}" if self.sharpen_after else name

    def arguments(self, length: int) -> dict[str, Any]:
        """Return the variant's arguments for models that are trained on so many rows."""
        arguments: dict[str, Any] = {} if self.p is None else {"p": self.p}
        if "length" in attention.arguments(self.attention):
            arguments["length"] = length
        return arguments


def variants(
    attentions: Iterable[str], exponents: tuple[float, ...] = (), sharpen_after: int = 0
) -> list[Variant]:
    """Return the attention rows of a run.

    Args:
        attentions: Names of variants and mixers: a row each.
        exponents: The p of every re-weighted variant, a row each; none for the catalogue's.
        sharpen_after: A further row for every re-weighted variant, which trains without
            re-weighting up to this step; 0 for none.

    Raises:
        ValueError: There is no such variant.
    """
    found = []
    for name in attentions:
        powers: tuple[float | None, ...] = (None,)
        if "p" in attention.arguments(name):
            powers = exponents or (attention.get(name).p,)
        found += [Variant(name, p) for p in powers]
    if sharpen_after:
        found += [Variant(v.attention, v.p, sharpen_after) for v in found if v.p is not None]
    return found
