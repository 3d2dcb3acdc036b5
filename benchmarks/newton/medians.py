"""Medians of the exam: the typical error, where a few sequences decide the root mean square.

In some shifts the star of many sequences moves less than a bin, so that nobody can tell a mass and
errors are large: a root mean square is theirs, the ceiling's too. The median is that of the others.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from benchmarks.newton.exam_rows import BOX, MEDIAN, MEDIAN_EXAM
from orbits.runs.statistics import Interval, joint_medians, percentiles

Array = npt.NDArray[np.float64]


def median_metrics(found: Mapping[str, Array]) -> dict[str, Interval]:
    """Return the median error of the box and of each shift, and their geometric mean over shifts.

    Args:
        found: Errors of ln F in the box and in each shift, [sequences, forces], NaN for none.

    Returns:
        Intervals resample the sequences, those of one index in all shifts together.
    """
    value, drawn = joint_medians([np.abs(errors) for errors in found.values()])
    metrics = {
        MEDIAN if name == BOX else f"{MEDIAN}@{name}": percentiles(value[k], drawn[:, k])
        for k, name in enumerate(found)
    }
    shifts = [k for k, name in enumerate(found) if name != BOX]
    if shifts:
        with np.errstate(divide="ignore"):  # the true force has no error
            own, each = (np.exp(np.log(x[..., shifts]).mean(axis=-1)) for x in (value, drawn))
        metrics[MEDIAN_EXAM] = percentiles(own, each)
    return metrics
