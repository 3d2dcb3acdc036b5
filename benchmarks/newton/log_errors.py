"""Errors of ln F by sequence, of which the exam takes root mean squares, medians and means."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def log_errors(sequence_id: npt.NDArray[Any], predicted: Array, true: Array, n: int) -> Array:
    """Return ln F predicted less ln F, [n, most forces of a sequence].

    Args:
        sequence_id: The sequence of each force, 0 to n - 1, [points].
        predicted: Predicted forces, [points]; those without a logarithm are left out.
        true: True forces in the same unit, [points].
        n: Number of sequences.

    Returns:
        One row per sequence, with NaN where it has fewer forces than another one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.log(predicted / true)
    usable = np.isfinite(error)
    order = np.argsort(sequence_id[usable], kind="stable")
    sequence = sequence_id[usable][order].astype(np.int64)
    counts = np.bincount(sequence, minlength=n)
    place = np.arange(len(sequence)) - (np.cumsum(counts) - counts)[sequence]
    table = np.full((n, max(int(counts.max(initial=0)), 1)), np.nan)
    table[sequence, place] = error[usable][order]
    return table
