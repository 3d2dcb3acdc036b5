"""Attention variants, linear mixers, named ablations and layers as the rows of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import attention
from benchmarks.attention_names import NAMED


@dataclass(frozen=True)
class Variant:
    """One attention row: a variant, a linear mixer, an ablation or a layer, and its schedule.

    Raises:
        ValueError: There is no such name, or it refuses its ``p``.
    """

    name: str
    p: float | None = None
    sharpen_after: int = 0

    def __post_init__(self) -> None:
        if self.sharpen_after < 0:
            raise ValueError(f"sharpen_after must be at least 0, got {self.sharpen_after}")
        attention.label(self.attention, **self._args())  # refuses

    @property
    def attention(self) -> str:
        """The variant or mixer that is built."""
        return NAMED.get(self.name, (self.name,))[0]

    @property
    def label(self) -> str:
        """The name shown in tables."""
        if self.name in NAMED:
            label = self.name if self.p is None else f"{self.name} p={self.p:g}"
        else:
            label = attention.label(self.name, **self._args())
        return f"{label}, off to step {self.sharpen_after}" if self.sharpen_after else label

    @property
    def stretches(self) -> bool:
        """Whether dynamic NTK changes it: not linear mixers, nor what never rotates, as ALiBi."""
        name, rotates = self.attention, self._args().get("rope_base", True) is not None
        return rotates and name in attention.names() and attention.get(name).bias != "alibi"

    def arguments(self, length: int, rotary: bool = True) -> dict[str, Any]:
        """Return the arguments for models that are trained on so many rows.

        Args:
            length: Rows.
            rotary: False for models with positions of their own, whose attention needs none;
                RetNet's are part of it all the same.
        """
        arguments, taken = self._args(), attention.arguments(self.attention)
        if "length" in taken:
            arguments["length"] = length
        if "window" in taken:  # longer sequences then have no distance that training had not
            arguments["window"] = min(length, attention.get(self.attention).window)
        if "max_length" in taken:
            # Longer sequences than those of the training are asked too, up to the mixer's default.
            known = attention.linear.get(self.attention).arguments["max_length"]
            arguments["max_length"] = max(length, known)
        if not rotary and "angular" in taken:  # zeros
            arguments.setdefault("angular", "plain")
        elif not rotary and (self.attention in attention.names() or "rope_base" in taken):
            arguments["rope_base"] = None
        return arguments

    def _args(self) -> dict[str, Any]:
        fixed = NAMED[self.name][1] if self.name in NAMED else {}
        return {**fixed, **({} if self.p is None else {"p": self.p})}


def check_re_weighted(what: str, attentions: Iterable[str]) -> None:
    """Refuse an option of re-weighted variants where none is among the names.

    Raises:
        ValueError: The message lists them.
    """
    if not any("p" in attention.arguments(Variant(name).attention) for name in attentions):
        known = ", ".join(n for n in attention.names() if "p" in attention.arguments(n))
        raise ValueError(f"{what} needs a re-weighted variant: {known}")


def variants(
    attentions: Sequence[str], exponents: tuple[float, ...] = (), sharpen_after: int = 0
) -> list[Variant]:
    """Return the attention rows of a run, in order, each once.

    Args:
        attentions: Names of variants, mixers, ablations and layers: a row each.
        exponents: The p of every re-weighted variant, a row each; none for the catalogue's.
        sharpen_after: A further row for every re-weighted variant, which trains without
            re-weighting up to this step; 0 for none.

    Raises:
        ValueError: There is no such variant, it refuses an exponent, or none is re-weighted that
            ``sharpen_after`` could be of.
    """
    rows = []
    for name in attentions:
        powers: tuple[float | None, ...] = (None,)
        if "p" in attention.arguments(Variant(name).attention):
            powers = exponents or (attention.get(Variant(name).attention).p,)
        rows += [Variant(name, p) for p in powers]
    if sharpen_after:
        check_re_weighted("sharpen_after", attentions)
        rows += [Variant(v.name, v.p, sharpen_after) for v in rows if v.p is not None]
    return list(dict.fromkeys(rows))
