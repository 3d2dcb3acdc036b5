"""Floors of forecasts: what needs no training by gradients, against its definition."""

import types

import numpy as np
import pytest
import torch

from benchmarks.forecasting import floors as floors_file
from benchmarks.forecasting.floors import floors, ridges
from benchmarks.forecasting.forecasting import BY_CHANNEL, LAST, LAW, OF_ALL, RIDGE, STUDY
from benchmarks.forecasting.learner import ForecastData
from orbits.runs.result import Case, Metric, Result

DATA = {"name": "radial_velocity", "lookback": 48, "horizon": 12, "gaps": "carry"}


def test_floors_are_what_their_names_say():
    data = {**DATA, "n_val": 5, "n_test": 7}
    made = ForecastData(**data)
    rows = {x.variant: x.metrics for x in floors(data, 5000)}
    starts = np.linspace(0, len(made.series.windows("test", 48, 12)) - 1, 7).round().astype(int)
    starts = made.series.windows("test", 48, 12)[starts]
    filled, values, truth = (getattr(made.series, x) for x in ("filled", "values", "truth"))
    assert rows["ridge"]["mse"].value < rows["mean"]["mse"].value / 3
    errors = {name: [] for name in rows if not name.startswith(RIDGE)}
    for start in starts + 48:
        for step in range(start, start + 12):
            seen = values[step, 0]
            errors["last value"].append(seen - filled[start - 1, 0])
            errors["last season"].append(seen - filled[step - 24, 0])
            errors["mean"].append(seen)
            errors[LAW].append(seen - truth[step, 0])
    for name, each in errors.items():
        known = np.array(each)[np.isfinite(each)]
        assert rows[name]["mse"].value == pytest.approx(np.mean(known**2), rel=1e-4)
        assert rows[name]["mae"].value == pytest.approx(np.mean(np.abs(known)), rel=1e-4)


def test_each_step_has_the_ridge_regression_of_the_windows_that_measured_it():
    made = ForecastData(**DATA)
    ahead = ridges(made)[RIDGE](torch.ones(1, 48, 2))
    starts = made.series.windows("train", 48, 12)
    all_past = np.stack([made.series.filled[i : i + 48, 0] for i in starts])
    all_future = np.stack([made.series.values[i + 48 : i + 60, 0] for i in starts])
    assert not np.isfinite(all_future).all(axis=0).any()
    for step in range(12):
        there = np.isfinite(all_future[:, step])
        past, future = all_past[there], all_future[there, step]
        centred = past - past.mean(axis=0)
        towards = centred.T @ (future - future.mean())
        weight = np.linalg.solve(centred.T @ centred + np.eye(48), towards)
        wanted = (1 - past.mean(axis=0)) @ weight + future.mean()
        assert ahead[0, step, 1].item() == pytest.approx(wanted, abs=1e-3)


def test_a_map_of_all_channels_sees_what_one_of_them_tells_of_another(monkeypatch):
    ahead, lag = 4, 6
    walk = np.cumsum(np.random.default_rng(0).normal(size=600))
    values = np.stack([walk[lag:], walk[:-lag]], axis=1)  # the second repeats the first
    windows = torch.from_numpy(np.stack([values[i : i + 12] for i in range(580)])).float()
    batch = {"past": windows[:, :-ahead], "future": windows[:, -ahead:]}
    sequences = types.SimpleNamespace(as_batch=lambda: {x: each[:400] for x, each in batch.items()})
    data = types.SimpleNamespace(sequences=lambda part, n: sequences)
    made = ridges(data)
    assert list(made) == [RIDGE, BY_CHANNEL, OF_ALL]
    past, future = (each[400:] for each in batch.values())
    errors = {name: (of(past) - future).square().mean((0, 1)) for name, of in made.items()}
    assert errors[OF_ALL][1] < 0.01 < errors[BY_CHANNEL][1]
    level = torch.tensor([30.0, -20.0])
    for name in (BY_CHANNEL, OF_ALL):  # which know no level but the last one
        torch.testing.assert_close(made[name](past + level), made[name](past) + level)
    monkeypatch.setattr(floors_file, "MOST_WEIGHTS", past[0].numel() * future[0].numel() - 1)
    assert list(ridges(data)) == [RIDGE, BY_CHANNEL]


def test_the_best_floor_is_named_and_who_is_below_it():
    rows = {"dlinear": (0.4, 0.5, 0.6), "patchtst": (0.1, 0.2, 0.3), "softmax": (0.2, 0.25, 0.45)}
    task = {"series": "eeg", "horizon": 12}
    cases = [
        Result(
            Case("forecasting", "measurement", name, seed=seed, setting={**task, "lr": 0.1}),
            metrics={"mse": Metric(value), "mae": Metric(1.0), "val_mse": Metric(1.0)},
        )
        for name, values in rows.items()
        for seed, value in enumerate(values)
    ]
    for name, value in {LAST: 0.9, RIDGE: 0.35, LAW: 0.01}.items():
        case = Case("forecasting", "measurement", name, setting={**task, "lr": None})
        cases.append(Result(case, metrics={"mse": Metric(value), "mae": Metric(1.0)}))
    wanted = "without gradient steps: ridge 0.350, the least of 2; true law 0.010; "
    assert STUDY.sentences(cases)[1].endswith(
        f"{wanted}patchtst alone is below it in every training."
    )


@pytest.mark.parametrize("horizon", [96, 150])
def test_a_horizon_without_a_whole_window_has_all_its_floors(horizon):
    data = {**DATA, "horizon": horizon, "n_val": 5, "n_test": 7}
    rows = {x.variant: x.metrics["mse"].value for x in floors(data, 5000)}
    assert rows["ridge"] < rows["mean"] / 3
    short = floors({**data, "lookback": 20}, 5000)
    assert "last season" in rows
    assert "last season" not in {x.variant for x in short}
