"""Missing rows and the season of a series, by its dates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas

MONTH = pandas.Timedelta(days=27)
"""Longer steps are counted in months, whose days differ."""
TOLERANCE = 0.1
"""Share of a step by which a date may be off."""
CYCLES = tuple(pandas.Timedelta(days=days) for days in (1, 7, 365.25))
"""A day, a week and a year."""


def season_of(dates: pandas.Series) -> int:
    """Return the steps of the shortest of :data:`CYCLES` that has two or more; else 1.

    So an hourly series has seasons of 24 steps, a daily one of 7, a weekly one of 52 and a monthly
    one of 12.

    Args:
        dates: Rising dates in ISO 8601.
    """
    if len(dates) < 3:
        return 1
    step = pandas.to_datetime(dates, format="ISO8601", utc=True).diff().median()
    return next((n for cycle in CYCLES if (n := round(cycle / step)) > 1), 1)


def in_step(table: pandas.DataFrame, dates: pandas.Series, gaps: str) -> pandas.DataFrame:
    """Return the rows of a table at equal steps of time, those that are missing without values.

    Args:
        table: The rows.
        dates: Their dates in ISO 8601, of any kind.
        gaps: ``refuse`` missing rows, or ``carry`` what is known over them.

    Raises:
        ValueError: Dates are missing, do not rise or have no common step, or a row is missing that
            is not carried; the message names the row and the way out.
    """
    way_out = f"or take the rows as they are by --drop {dates.name!r}"
    read = pandas.to_datetime(dates, format="ISO8601", utc=True, errors="coerce")
    if len(table) < 3:
        return table
    if read.isna().all():
        such = f"dates such as {str(dates.iloc[0])!r}"
        raise ValueError(f"{such} are not read; write them as 2025-01-31, {way_out}")
    if (unread := np.flatnonzero(read.isna())).size:
        raise ValueError(f"row {unread[0] + 1} has no date; correct it, {way_out}")
    if (back := np.flatnonzero(read.diff() <= pandas.Timedelta(0))).size:
        raise ValueError(
            f"row {back[0] + 1} is not later than the one before; sort the rows, {way_out}"
        )
    places = _places(read)
    number = places.round().astype(int)
    between = (np.abs(places - number) > TOLERANCE) | (np.diff(number, prepend=-1) == 0)
    if between.any():
        raise ValueError(
            f"row {np.flatnonzero(between)[0] + 1} lies between the time steps of the others; "
            f"bring the rows to one step, {way_out}"
        )
    every = number[-1] + 1
    if not (missing := every - len(table)):
        return table
    first = np.flatnonzero(np.diff(number) > 1)[0] + 2
    line = f"{missing:,} of {every:,} rows are missing by their dates, the first before row {first}"
    if gaps == "refuse":
        raise ValueError(f"{line}; add them, run with --gaps carry, {way_out}")
    if missing > len(table):
        raise ValueError(f"{line}, more than there are; correct the dates, {way_out}")
    return table.set_axis(number).reindex(range(every))


def _places(dates: pandas.Series) -> npt.NDArray[np.float64]:
    """Return how many usual steps each date lies after the first."""
    since = dates - dates.iloc[0]
    if since.diff().median() > MONTH:
        months = 12 * dates.dt.year + dates.dt.month
        since = months - months.iloc[0]
    return (since / since.diff().median()).to_numpy(np.float64)
