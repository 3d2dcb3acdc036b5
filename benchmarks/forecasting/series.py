"""Time series by name or by path: their values, their parts, and checks of both.

Published ones are CSV files as everyone has them: ETT with 12, 4 and 4 months of 30 days for
training, validation and test; Weather and Solar by 70, 10 and 20%, like any file of one's own.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas
from matplotlib import cbook

from benchmarks.forecasting import orbital
from benchmarks.forecasting.dates import in_step, season_of

Array = npt.NDArray[np.float64]
TIMES = ("date", "dates", "time", "timestamp", "datetime")
"""Headings of a column of dates."""
TRAIN, TEST = 0.7, 0.2
"""Shares of training and test of a series without published parts; validation has the rest."""


DAYS = 23376
"""Days from 1962 to 2025."""


class Missing(FileNotFoundError):
    """The file of a published series is not there."""


@dataclass(frozen=True)
class Source:
    """A series that is known by name.

    Attributes:
        season: Steps of a season, which seasonal naive repeats.
        about: Measured quantities, and the time between two values.
        file: Name of its CSV; empty for one that needs no file.
        parts: Steps of training, validation and test; None for shares of all.
    """

    season: int
    about: str
    file: str = ""
    parts: tuple[int, int, int] | None = None


HOURS, QUARTERS = ((12 * d, 4 * d, 4 * d) for d in (30 * 24, 30 * 96))
KNOWN = {
    **{
        f"etth{n}": Source(24, "oil and load of a transformer, hourly", f"ETTh{n}.csv", HOURS)
        for n in (1, 2)
    },
    **{
        f"ettm{n}": Source(96, "the same every 15 minutes", f"ETTm{n}.csv", QUARTERS)
        for n in (1, 2)
    },
    "weather": Source(144, "21 quantities of a weather station, every 10 minutes", "weather.csv"),
    "solar": Source(144, "137 photovoltaic plants, every 10 minutes", "solar_AL.txt"),
    "earth_rotation": Source(365, "the Earth's pole and length of day, daily; astropy-iers-data"),
    "eeg": Source(1, "an electroencephalogram of four channels, shipped with matplotlib"),
    "radial_velocity": Source(24, "a star's velocity with two planets, noise and gaps"),
    "light_curve": Source(24, "a star's light with spots and transits, noise and gaps"),
}
"""Series by name."""


@dataclass(frozen=True)
class Series:
    """A series, standardised by its training part as the field does.

    Attributes:
        values: [T, C], NaN where nothing was measured.
        filled: The same with the last measured value in gaps, [T, C]: what models read.
        ends: Ends of training, validation and test.
        season: Steps of a season; 1 where none is known.
        truth: Values by a law, without noise, in the same scale, [T, C]; None where none is known.
    """

    values: Array
    filled: Array
    ends: tuple[int, int, int]
    season: int
    truth: Array | None = None

    def windows(self, split: str, lookback: int, horizon: int) -> npt.NDArray[np.int64]:
        """Return the first step of each window of a part; its look-back may reach before it."""
        place = ("train", "val", "test").index(split)
        start = self.ends[place - 1] - lookback if place else 0
        return np.arange(start, self.ends[place] - lookback - horizon + 1)


def find(name: str, folder: str | None) -> Path | None:
    """Return the file of a series; None for one that needs no file."""
    if name == "earth_rotation":
        return _file_of_earth_rotation()
    if name in KNOWN:
        if not (wanted := KNOWN[name].file):
            return None
        path = Path(folder or ".") / wanted
        where = f"--data {folder}" if folder else "this folder; name another one by --data"
        if not path.is_file():
            raise Missing(f"{name} is not here: no {wanted} in {where}")
        return path
    if "/" not in name and Path(name).suffix not in (".csv", ".txt"):
        raise ValueError(f"unknown series {name!r}; choose from {', '.join(KNOWN)} or a CSV's path")
    if not Path(name).is_file():
        raise ValueError(f"{name}: no such file")
    return Path(name)


def load(
    name: str, file: str | Path | None, gaps: str = "refuse", drop: Sequence[str] = ()
) -> Series:
    """Return a series.

    Args:
        name: Name or path of the series.
        file: File of the series, from :func:`find`.
        gaps: What is done where a value is missing: ``refuse``, or ``carry`` the last one on for
            what models read; missing values are then never scored.
        drop: Columns that are left out; that of dates, so that no row is missing by them.
    """
    truth = None
    source = KNOWN.get(name, Source(1, ""))
    season = source.season
    if name == "earth_rotation":
        assert file is not None
        table = _earth_rotation(Path(file))
    elif file is not None:
        table, dates = _read(Path(file))
        if dates is None and str(first := table.columns[0]).lower() in TIMES and first not in drop:
            raise ValueError(
                f"{name}: column {first} holds numbers; write dates as 2025-01-31, or leave it out "
                f"by --drop {first!r}"
            )
        # Published files are taken row by row, as everywhere in the field.
        if dates is not None and dates.name not in drop and name not in KNOWN:
            try:
                table = in_step(table, dates, gaps)
                season = season_of(dates)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        drop = [column for column in drop if dates is None or column != dates.name]
    elif name == "eeg":
        table = _eeg()
    else:
        noisy, truth = orbital.SERIES[name]()
        table = pandas.DataFrame(noisy, columns=["signal"])
    if unknown := [column for column in drop if column not in table.columns]:
        raise ValueError(f"{name} has no column {unknown[0]!r} to drop; it has {_names(table)}")
    table = table.drop(columns=list(drop))
    ends = _ends(name, len(table), source)
    table = table.iloc[: ends[2]]
    _check(name, table, ends, gaps)
    table = table.astype(np.float64).replace([np.inf, -np.inf], np.nan)
    values = table.to_numpy()
    filled = table.ffill().bfill().to_numpy()
    mean, sd = np.nanmean(values[: ends[0]], axis=0), np.nanstd(values[: ends[0]], axis=0)
    if truth is not None:
        truth = (truth - mean) / sd
    return Series((values - mean) / sd, (filled - mean) / sd, ends, season, truth)


def _read(path: Path) -> tuple[pandas.DataFrame, pandas.Series | None]:
    """Return the columns of a CSV without that of dates or of pandas' row numbers, and that one.

    A file has no headings whose first word is a number or a date, unless every word of its first
    row could name a variable, as "may" can.
    """
    try:
        first = pandas.read_csv(path, header=None, nrows=1, dtype=str).iloc[0]
        no_number = pandas.to_numeric(first, errors="coerce").isna()
        is_date = pandas.to_datetime(first[:1], errors="coerce").notna().all()
        are_names = (no_number & first.map(lambda word: str.isidentifier(str(word)))).all()
        headed = bool(are_names or (no_number.iloc[0] and not is_date))
        table = pandas.read_csv(path, header=0 if headed else None)
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: no CSV: {' '.join(str(error).split())}") from None
    if not isinstance(table.index, pandas.RangeIndex):
        raise ValueError(
            f"{path}: rows have more values than there are headings; divide columns by commas, and "
            "decimals by points"
        )
    table.columns = [str(column) for column in table.columns]
    first_column = table.columns[0]
    numbers = pandas.to_numeric(table[first_column], errors="coerce")
    unnamed = headed and pandas.isna(first.iloc[0])
    if unnamed and numbers.eq(range(len(table))).all():
        return table.drop(columns=first_column), None
    if numbers.isna().all():
        return table.drop(columns=first_column), table[first_column]
    return table, None


def _file_of_earth_rotation() -> Path:
    """Return the file of the Earth's orientation that a package ships."""
    if (spec := importlib.util.find_spec("astropy_iers_data")) is None or spec.origin is None:
        raise Missing("earth_rotation is not here: pip install astropy-iers-data")
    return Path(spec.origin).parent / "data" / "eopc04.1962-now"


def _earth_rotation(path: Path) -> pandas.DataFrame:
    """Return the pole's place in arcseconds and the length of day, daily from 1962 to 2025.

    IERS 20 C04, consistent with ITRF 2020. Later days are left out, so that the series does not
    grow with each release.
    """
    columns = {0: "year", 5: "x", 6: "y", 12: "length of day"}
    table = pandas.read_csv(path, sep=r"\s+", comment="#", header=None, usecols=[*columns])
    table = table.rename(columns=columns)
    table = table[table["year"] <= 2025].drop(columns="year")
    if len(table) != DAYS:
        raise ValueError(f"{path}: {len(table)} days up to 2025, not {DAYS}; take a later release")
    return table


def _eeg() -> pandas.DataFrame:
    path = str(cbook.get_sample_data("eeg.dat", asfileobj=False))
    values = np.fromfile(path, np.float64).reshape(-1, 4)
    return pandas.DataFrame(values, columns=[f"channel {n}" for n in range(1, 5)])


def _ends(name: str, length: int, source: Source) -> tuple[int, int, int]:
    if source.parts is None:
        return int(TRAIN * length), length - int(TEST * length), length
    training, validation, test = source.parts
    if length < sum(source.parts):
        raise ValueError(f"{name} needs {sum(source.parts)} rows, its file has {length}")
    return training, training + validation, training + validation + test


def _check(name: str, table: pandas.DataFrame, ends: tuple[int, int, int], gaps: str) -> None:
    if table.shape[1] == 0:
        raise ValueError(f"{name} has no column of numbers")
    for column in table.columns:
        numbers = pandas.to_numeric(table[column], errors="coerce")
        if (words := table[column][numbers.isna() & table[column].notna()]).size:
            row = int(words.index[0]) + 1
            raise ValueError(
                f"{name}, column {column}: {str(words.iloc[0])!r} in row {row} is no number; "
                f"correct it, or leave the column out by --drop {column!r}"
            )
        missing = np.flatnonzero(~np.isfinite(numbers.to_numpy(np.float64)))
        if missing.size and gaps == "refuse":
            raise ValueError(
                f"{name}, column {column}: {missing.size} of {len(table)} values are missing, the "
                f"first in row {missing[0] + 1}; fill them, or run with --gaps carry"
            )
        for part, rows in (("validation", slice(*ends[:2])), ("test", slice(*ends[1:]))):
            if numbers[rows].isna().all():
                raise ValueError(
                    f"{name}, column {column}: no value in the {part} part; leave it out by "
                    f"--drop {column!r}"
                )
        known = numbers[: ends[0]].dropna()
        if known.nunique() < 2:
            raise ValueError(
                f"{name}, column {column} is constant in the training part, so nothing scales it; "
                f"leave it out by --drop {column!r}"
            )


def _names(table: pandas.DataFrame) -> str:
    return ", ".join(map(str, table.columns))
