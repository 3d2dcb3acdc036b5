"""Sequences that are read in segments of a fixed length, which the first position begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from attention.linear.mixer import Mixer


class Segmented(Mixer):
    """A mixer in which something happens at the end of each ``segment`` positions.

    Arguments:
        segment: Positions of a segment.
    """

    arguments: ClassVar[Mapping[str, Any]] = {"segment": 64}

    def _pieces(self, before: int, length: int, chunk: int | None) -> Iterator[tuple[int, slice]]:
        """Yield pieces of ``length`` positions of which each lies within one segment.

        Yields:
            The place of the piece's first position in its segment, and the piece.
        """
        first = 0
        while first < length:
            place = (before + first) % self.args["segment"]
            last = min(first + (chunk or 1), first + self.args["segment"] - place, length)
            yield place, slice(first, last)
            first = last
