"""Two-way decomposition of a variance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Shares(NamedTuple):
    """Shares of the sum of squares about the mean.

    Attributes:
        deviation: Standard deviation of all values.
        rows: Share of the means of rows.
        columns: Share of the means of columns.
        rest: Share that neither explains.
        chance: The same three where values are independent and equally distributed, in the mean:
            their degrees of freedom.
    """

    deviation: float
    rows: float
    columns: float
    rest: float
    chance: tuple[float, float, float]


def shares(table: npt.ArrayLike) -> Shares | None:
    """Divide the variance of a table into shares of its rows, its columns and the rest.

    Two-way analysis of variance without replication (Fisher, 1925).

    Args:
        table: [R, C], one value each.

    Returns:
        The shares; None with fewer than two rows or columns, or where all values are the same.
    """
    values = np.asarray(table, np.float64)
    if values.ndim != 2 or min(values.shape) < 2 or np.ptp(values) == 0:
        return None
    n_rows, n_columns = values.shape
    mean = values.mean()
    total = float(np.sum((values - mean) ** 2))
    rows = n_columns * float(np.sum((values.mean(axis=1) - mean) ** 2)) / total
    columns = n_rows * float(np.sum((values.mean(axis=0) - mean) ** 2)) / total
    freedom = np.array([n_rows - 1, n_columns - 1, (n_rows - 1) * (n_columns - 1)])
    by_chance = tuple(float(x) for x in freedom / freedom.sum())
    deviation = float(values.std(ddof=1))
    return Shares(deviation, rows, columns, 1 - rows - columns, by_chance)  # type: ignore[arg-type]
