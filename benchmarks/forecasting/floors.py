"""Forecasts without training by gradients: last value or season, mean, ridge regressions, a law.

Three regressions differ in what one map sees. One map for all channels is the linear twin of
networks that take a channel at a time; a map of all channels to all is that of networks that see
them together. The latter two forecast differences from the last value, since a series drifts away
from the mean of its training part: networks scale by the look-back for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import Ridge

from benchmarks.forecasting.errors import errors, errors_of
from benchmarks.forecasting.forecasting import BY_CHANNEL, LAST, LAW, OF_ALL, RIDGE
from benchmarks.forecasting.learner import ForecastData
from orbits.runs.cell import Outcome

Forecast = Callable[[torch.Tensor], torch.Tensor]
RIDGE_WINDOWS = 5000
"""Most training windows of a ridge regression."""
MOST_WEIGHTS = 10**8
"""Most weights of a map of all channels to all; larger ones are left out, as Solar's is."""


def floors(data: dict[str, Any], ridge_windows: int, file: Path | None = None) -> list[Outcome]:
    """Test forecasts without training by gradients, a row each."""
    made = ForecastData(**data, file=None if file is None else str(file))
    windows = made.sequences("test", data["n_test"])
    season, horizon = made.series.season, data["horizon"]
    places = torch.arange(horizon) % season - season
    rows: dict[str, Forecast] = {
        LAST: lambda past: past[:, -1:].expand(-1, horizon, -1),
        "last season": lambda past: past[:, places],
        "mean": lambda past: torch.zeros(len(past), horizon, past.shape[2]),
        **ridges(made, ridge_windows),
    }
    if season == 1 or season > data["lookback"]:
        del rows["last season"]  # the last value again, or more than is seen
    outcomes = [
        Outcome(errors(lambda batch, of=forecast: of(batch["past"]), windows), variant=name)
        for name, forecast in rows.items()
    ]
    if made.series.truth is not None:
        starts = windows.starts + data["lookback"]
        truth = np.stack([made.series.truth[i : i + horizon] for i in starts])
        future = np.stack([made.series.values[i : i + horizon] for i in starts])
        outcomes.append(Outcome(errors_of(truth, future), variant=LAW))
    return outcomes


def ridges(data: ForecastData, n: int = RIDGE_WINDOWS) -> dict[str, Forecast]:
    """Return ridge regressions of the horizon on the look-back, from ``n`` windows at most.

    Each step ahead is fitted to the windows in which it was measured, as networks are.
    """
    batch = data.sequences("train", n).as_batch()
    past, future = batch["past"], batch["future"]  # [N, lookback, C], [N, horizon, C]
    channels = past.shape[2]
    alike = _fit(past.transpose(1, 2).flatten(0, 1), future.transpose(1, 2).flatten(0, 1))
    made: dict[str, Forecast] = {
        RIDGE: lambda seen: alike(seen.transpose(1, 2)).transpose(1, 2),
        BY_CHANNEL: _of_differences(past, future, lambda x: x.unbind(2)),
    }
    if channels > 1 and past[0].numel() * future[0].numel() <= MOST_WEIGHTS:
        made[OF_ALL] = _of_differences(past, future, lambda x: [x.flatten(1)])
    return made


def _of_differences(
    past: torch.Tensor,
    future: torch.Tensor,
    groups: Callable[[torch.Tensor], Sequence[torch.Tensor]],
) -> Forecast:
    """Fit a map to each group of columns [N, columns] of the differences from the last value."""
    last, shape = past[:, -1:], future.shape[1:]
    pairs = zip(groups(past - last), groups(future - last), strict=True)
    fitted = [_fit(seen, wanted) for seen, wanted in pairs]

    def forecast(seen: torch.Tensor) -> torch.Tensor:
        last = seen[:, -1:]
        each = [of(part) for of, part in zip(fitted, groups(seen - last), strict=True)]
        return last + torch.stack(each, dim=-1).reshape(len(seen), *shape)

    return forecast


def _fit(past: torch.Tensor, future: torch.Tensor) -> Forecast:
    """Return the ridge regression of rows on rows; what was never measured is forecast by 0."""
    seen, wanted = past.numpy(), future.numpy()
    weight, offset = np.zeros((wanted.shape[1], seen.shape[1])), np.zeros(wanted.shape[1])
    alike: dict[bytes, list[int]] = {}  # columns that were measured in the same rows
    for column, there in enumerate(np.isfinite(wanted).T):
        alike.setdefault(there.tobytes(), []).append(column)
    for pattern, columns in alike.items():
        there = np.frombuffer(pattern, bool)
        if there.any():
            fitted = Ridge(alpha=1.0).fit(seen[there], wanted[there][:, columns])
            weight[columns], offset[columns] = fitted.coef_, fitted.intercept_
    of_past, constant = torch.from_numpy(weight.T).float(), torch.from_numpy(offset).float()
    return lambda rows: rows @ of_past + constant
