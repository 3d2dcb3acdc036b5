"""Series: files as they are published, parts, scales, and what is refused in one line."""

import numpy as np
import pandas
import pytest

from benchmarks.__main__ import main
from benchmarks.forecasting import orbital, series
from orbits import kepler

DAYS = 30


def table(rows, columns=3, seed=0):
    draw = np.random.default_rng(seed)
    return pandas.DataFrame(
        draw.normal(size=(rows, columns)) + np.arange(columns), columns=[*"abcdefg"[:columns]]
    )


def dated(frame):
    dates = pandas.date_range("2016-07-01", periods=len(frame), freq="h")
    return frame.assign(date=dates.astype(str))[["date", *frame.columns]]


def test_an_ett_file_is_cut_after_twenty_months(tmp_path):
    frame = table(20 * DAYS * 24 + 100, 7)
    dated(frame).to_csv(tmp_path / "ETTh1.csv", index=False)
    made = series.load("etth1", series.find("etth1", str(tmp_path)))
    assert made.ends == tuple(DAYS * 24 * months for months in (12, 16, 20))
    train = frame[: made.ends[0]]
    wanted = (frame - train.mean()) / train.std(ddof=0)
    np.testing.assert_allclose(made.values, wanted[: made.ends[2]], atol=1e-9)
    assert made.truth is None


def test_solar_has_neither_dates_nor_headings(tmp_path):
    table(100).to_csv(tmp_path / "solar_AL.txt", index=False, header=False)
    made = series.load("solar", series.find("solar", str(tmp_path)))
    assert made.values.shape == (100, 3)
    assert made.ends == (70, 80, 100)


@pytest.mark.parametrize("headed", [True, False])
def test_a_first_row_of_numbers_behind_a_date_is_one_of_values(tmp_path, headed):
    frame = dated(table(50)).set_axis(["date", "0", "1", "OT"], axis=1)  # as electricity.csv has it
    frame.to_csv(tmp_path / "mine.csv", index=False, header=headed)
    made = series.load("mine.csv", tmp_path / "mine.csv")
    assert made.values.shape == (50, 3)


def test_row_numbers_as_pandas_writes_them_are_no_series(tmp_path):
    path = tmp_path / "mine.csv"
    table(50).to_csv(path)
    assert series.load("mine.csv", path).values.shape == (50, 3)
    table(50).set_axis(["may", "june", "now"], axis=1).to_csv(path, index=False)
    assert series.load("mine.csv", path).values.shape == (50, 3)


def test_a_first_row_of_missing_values_is_no_row_of_names(tmp_path):
    frame = dated(table(50)).astype(object)
    frame.iloc[0, 1:] = "?"
    frame.to_csv(tmp_path / "mine.csv", index=False, header=False)
    with pytest.raises(ValueError, match="'\\?' in row 1 is no number"):
        series.load("mine.csv", tmp_path / "mine.csv")


def test_a_window_is_scored_in_its_own_part_alone(tmp_path):
    dated(table(200)).to_csv(tmp_path / "weather.csv", index=False)
    made = series.load("weather", tmp_path / "weather.csv")
    for split, (first, end) in zip(
        ("train", "val", "test"), ((10, 140), (140, 160), (160, 200)), strict=True
    ):
        starts = made.windows(split, 10, 4)
        assert (starts[0] + 10, starts[-1] + 14) == (first, end)


def test_gaps_are_carried_for_reading_and_never_scored(tmp_path):
    frame = table(100)
    frame.loc[20:23, "b"] = np.nan
    frame.loc[24, "b"] = np.inf
    frame.to_csv(tmp_path / "mine.csv", index=False)
    made = series.load("mine", tmp_path / "mine.csv", gaps="carry")
    assert np.isnan(made.values[20:25, 1]).all()
    np.testing.assert_array_equal(made.filled[20:25, 1], np.repeat(made.values[19, 1], 5))
    assert np.isnan(made.values).sum() == 5


@pytest.mark.full
@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("b", np.nan, "column b: 1 of 100 values are missing, the first in row 8.*--gaps carry"),
        ("b", "n/a?", "column b: 'n/a\\?' in row 8 is no number; .*--drop 'b'"),
        ("b", np.inf, "column b: 1 of 100 values are missing"),
        ("c", None, "column c is constant in the training part.*--drop 'c'"),
    ],
)
def test_a_bad_column_is_named_with_the_way_out(tmp_path, refusal, column, value, words):
    frame = table(100).astype(object)
    if value is None:
        frame.loc[:69, column] = 3.0
    else:
        frame.loc[7, column] = value
    path = tmp_path / "mine.csv"
    dated(frame).to_csv(path, index=False, na_rep="")
    with pytest.raises(ValueError, match=words) as error:
        series.load("mine.csv", path)
    flags = ["--series", str(path), "--out", str(tmp_path / "o")]
    line = refusal(main, ["run", "forecasting", *flags])
    assert line == f"error: {error.value}"
    assert not (tmp_path / "o").exists()
    left = series.load("mine.csv", path, drop=[column])
    assert left.values.shape == (100, 2)


@pytest.mark.full
def test_what_is_no_series_is_refused(tmp_path, refusal):
    run = ["run", "forecasting", "--preset", "tiny", "--out", str(tmp_path / "o")]
    assert "unknown series 'etth3'; choose from etth1" in refusal(main, [*run, "--series", "etth3"])
    assert "no such file" in refusal(main, [*run, "--series", str(tmp_path / "x.csv")])
    (tmp_path / "x.csv").write_text("")
    assert "no CSV" in refusal(main, [*run, "--series", str(tmp_path / "x.csv")])
    table(60).to_csv(tmp_path / "x.csv", index=False)
    line = refusal(main, [*run, "--series", str(tmp_path / "x.csv")])
    assert "the train part of x.csv holds no window of 48 + 12 steps" in line
    dated(table(60)).to_csv(tmp_path / "ETTh1.csv", index=False)
    line = refusal(main, [*run, "--series", "etth1", "--data", str(tmp_path)])
    assert "etth1 needs 14400 rows, its file has 60" in line
    line = refusal(main, [*run, "--drop", "z", "--series", str(tmp_path / "x.csv")])
    assert "no column 'z' to drop; it has a, b, c" in line


def test_a_stars_velocity_has_keplers_amplitude():
    for eccentricity, periapsis in ((0.0, 0.0), (0.4, 1.0)):
        _, velocity = orbital._orbit(1.0, eccentricity, periapsis)
        year = float(kepler.period(1.0, 1.0))
        amplitude = 2 * np.pi / year / np.sqrt(1 - eccentricity**2)
        # Samples are 24 an orbit: the largest lies within a step of the peak.
        assert np.ptp(velocity[:, 1]) / 2 == pytest.approx(amplitude, rel=0.03)


@pytest.mark.parametrize("name", orbital.SERIES)
def test_a_series_of_orbits_is_its_law_with_noise_and_gaps(name):
    made = series.load(name, None, gaps="carry")
    missing = np.isnan(made.values)
    assert missing.mean() == pytest.approx(orbital.GAP / orbital.EVERY, rel=0.02)
    noise = (made.values - made.truth)[~missing]
    assert noise.std() == pytest.approx(orbital.NOISE, rel=0.1)
    again = series.load(name, None, gaps="carry")
    np.testing.assert_array_equal(made.values, again.values)
    with pytest.raises(ValueError, match=r"column signal: .* missing"):
        series.load(name, None)


def test_the_shipped_recording_is_there():
    made = series.load("eeg", None)
    assert made.values.shape == (800, 4)
    assert np.isfinite(made.values).all()


def written(path, frame, dates, rows=None):
    """Write a frame with its dates, without some rows, and return its path."""
    frame = frame.assign(date=pandas.Index(dates).astype(str))[["date", *frame.columns]]
    frame.drop(index=rows or []).to_csv(path, index=False)
    return path


HOURS = pandas.date_range("2016-07-01", periods=100, freq="h")


def test_missing_rows_are_gaps_by_their_dates(tmp_path):
    path = written(tmp_path / "mine.csv", table(100), HOURS, [7, 8, 50])
    with pytest.raises(
        ValueError, match=r"3 of 100 rows .* the first before row 8; .*--gaps carry"
    ) as e:
        series.load("mine.csv", path)
    assert str(e.value).endswith("or take the rows as they are by --drop 'date'")
    made = series.load("mine.csv", path, gaps="carry")
    assert made.values.shape == (100, 3)
    assert np.flatnonzero(np.isnan(made.values[:, 0])).tolist() == [7, 8, 50]
    np.testing.assert_array_equal(made.filled[7], made.filled[6])
    assert series.load("mine.csv", path, drop=["date"]).values.shape == (97, 3)


@pytest.mark.parametrize(
    "dates",
    [
        pandas.date_range("1990-01-01", periods=100, freq="MS"),
        pandas.date_range("1990-01-31", periods=100, freq="QE"),
        pandas.date_range("1800-01-01", periods=100, freq="YS"),
        HOURS + pandas.to_timedelta(np.random.default_rng(0).normal(0, 30, 100), unit="s"),
        pandas.date_range("2016-10-29", periods=100, freq="h", tz="Europe/Berlin"),
    ],
)
def test_months_jitter_and_summer_time_are_no_gaps(tmp_path, dates):
    path = written(tmp_path / "mine.csv", table(100), dates)
    assert series.load("mine.csv", path).values.shape == (100, 3)


@pytest.mark.parametrize("dates", [["31/01/2000"] * 100, ["a-0"] * 100])
def test_dates_that_are_not_read_are_refused_and_may_be_left_out(tmp_path, dates):
    path = written(tmp_path / "mine.csv", table(100), dates)
    with pytest.raises(ValueError, match="are not read; write them as 2025-01-31, or take"):
        series.load("mine.csv", path)
    assert series.load("mine.csv", path, drop=["date"]).values.shape == (100, 3)


def test_a_column_of_numbers_that_is_called_a_date_is_no_channel(tmp_path):
    path = tmp_path / "mine.csv"
    table(100).rename(columns={"a": "Timestamp"}).to_csv(path, index=False)
    with pytest.raises(ValueError, match="column Timestamp holds numbers; write dates as"):
        series.load("mine.csv", path)
    assert series.load("mine.csv", path, drop=["Timestamp"]).values.shape == (100, 2)


def test_decimal_commas_are_refused(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("date;a\n" + "".join(f"2020-01-{n:02};5,{n}\n" for n in range(1, 31)))
    with pytest.raises(ValueError, match="more values than there are headings; divide columns by"):
        series.load("mine.csv", path)


@pytest.mark.parametrize(("rows", "part"), [((70, 80), "validation"), ((80, 100), "test")])
def test_a_part_without_a_value_is_refused_where_gaps_are_carried(tmp_path, rows, part):
    frame = table(100)
    frame.loc[rows[0] : rows[1] - 1, "b"] = np.nan
    frame.to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(ValueError, match=f"column b: no value in the {part} part"):
        series.load("mine.csv", tmp_path / "mine.csv", gaps="carry")


def test_a_missing_month_is_a_gap(tmp_path):
    dates = pandas.date_range("1990-01-01", periods=100, freq="MS")
    path = written(tmp_path / "mine.csv", table(100), dates, [5])
    with pytest.raises(ValueError, match=r"1 of 100 rows .* the first before row 6"):
        series.load("mine.csv", path)
    assert series.load("mine.csv", path, gaps="carry").values.shape == (100, 3)


@pytest.mark.parametrize(
    ("order", "fault"),
    [
        ([0, 2, 1, *range(3, 100)], "row 3 is not later than the one before; sort the rows"),
        ([0, 1, 1, *range(3, 100)], "row 3 is not later"),
        ([*range(100)][::-1], "row 2 is not later"),
    ],
)
def test_dates_that_do_not_rise_are_refused(tmp_path, order, fault):
    path = written(tmp_path / "mine.csv", table(100), HOURS[order])
    for gaps in ("refuse", "carry"):
        with pytest.raises(ValueError, match=fault):
            series.load("mine.csv", path, gaps=gaps)


@pytest.mark.parametrize(
    ("place", "date", "fault"),
    [
        (7, "", "row 8 has no date"),
        (7, "2016-07-01 07:30", "row 8 lies between the time steps"),
        (99, "2026-07-01", "more than there are"),
    ],
)
def test_a_date_that_is_wrong_is_named(tmp_path, place, date, fault):
    dates = HOURS.astype(str).to_numpy()
    dates[place] = date
    path = written(tmp_path / "mine.csv", table(100), dates)
    with pytest.raises(ValueError, match=fault):
        series.load("mine.csv", path, gaps="carry")


def test_published_files_are_taken_row_by_row(tmp_path):
    written(tmp_path / "weather.csv", table(100), HOURS, [7])
    made = series.load("weather", series.find("weather", str(tmp_path)))
    assert made.values.shape == (99, 3)


def test_the_earth_turns_in_64_years_of_days():
    pytest.importorskip("astropy_iers_data", reason="needs the extra forecasting")
    made = series.load("earth_rotation", series.find("earth_rotation", None))
    assert made.values.shape == (23376, 3)
    assert made.ends == (16363, 18701, 23376)
    assert np.isfinite(made.values).all()
    # The pole circles in 14 months (Chandler) and in a year, which beat in about 6.4 years.
    power = np.abs(np.fft.rfft(made.values[:, 0] - made.values[:, 0].mean())) ** 2
    periods = len(made.values) / (20 + np.argsort(power[20:]))
    assert {round(x / 30.4) for x in periods[-3:]} <= {12, 14}


def test_without_its_package_the_series_is_not_there(monkeypatch):
    monkeypatch.setattr(series.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(series.Missing, match="pip install astropy-iers-data"):
        series.find("earth_rotation", None)


@pytest.mark.parametrize(
    ("step", "season"),
    [("15min", 96), ("h", 24), ("D", 7), ("W", 52), ("MS", 12), ("QS", 4), ("YS", 1)],
)
def test_a_file_of_ones_own_has_the_season_of_its_dates(tmp_path, step, season):
    dates = pandas.date_range("2016-01-01", periods=100, freq=step)
    path = written(tmp_path / "mine.csv", table(100), dates)
    assert series.load("mine.csv", path).season == season
    assert series.load("mine.csv", path, drop=["date"]).season == 1
