"""Mixers of sequences up to a longest one, and weights that belong to pairs of positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from attention.linear.mixer import Mixer, RecurrentState
from attention.validation import check_sequences


class Bounded(Mixer):
    """A mixer with ``max_length`` positions; a longer sequence is refused before any work.

    Arguments:
        max_length: Positions of the longest sequence.
    """

    arguments: ClassVar[Mapping[str, Any]] = {"max_length": 1024}

    def _advance(self, x: Tensor, cache: RecurrentState | None, chunk: int | None) -> Tensor:
        check_sequences(x, self.width)
        length = x.shape[1] + (0 if cache is None else cache.length)
        if length > (most := self.args["max_length"]):
            raise ValueError(
                f"{self.name} was built for max_length={most} positions, got {length}: raise "
                "max_length, or shorten the sequence"
            )
        return super()._advance(x, cache, chunk)


def triangle_size(length: int) -> int:
    """Return how many numbers a lower triangle of ``length`` rows has."""
    return length * (length + 1) // 2


def triangle_rows(numbers: Tensor, first: int, count: int, outside: float) -> Tensor:
    """Return rows of a lower triangle whose numbers stand row after row.

    Row i has i + 1 numbers, whatever the longest sequence is: a table of them learns in full, and
    has nothing above its diagonal that could.

    Args:
        numbers: [..., N], rows 0, 1, ... one after another.
        first: The first row that is asked for.
        count: Number of rows.
        outside: Value above the diagonal.

    Returns:
        [..., count, first + count].
    """
    last = first + count
    part = numbers[..., triangle_size(first) : triangle_size(last)]
    rows = numbers.new_full((*numbers.shape[:-1], count, last), outside)
    row, column = torch.tril_indices(count, last, offset=first, device=numbers.device)
    rows[..., row, column] = part
    return rows
