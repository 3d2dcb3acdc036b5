"""Errors of forecasts, of the values that were measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from orbits.runs.result import Metric
from worldmodel.data.sequences import Sequences


def errors(forecast: Any, windows: Sequences, size: int = 250) -> dict[str, Metric]:
    """Return the mean squared and absolute error of forecasts of windows.

    Args:
        forecast: Maps a batch to the forecast [B, H, C].
        windows: The windows.
        size: Windows at once.
    """
    told = [(forecast(batch), batch["future"]) for batch in windows.batches(size)]
    return errors_of(*(torch.cat(each).double().numpy() for each in zip(*told, strict=True)))


def errors_of(forecast: np.ndarray, future: np.ndarray) -> dict[str, Metric]:
    """Return the errors of forecasts [N, ...]; n counts the N windows, which overlap."""
    there = np.isfinite(future)
    measured, n = forecast[there] - future[there], len(future)
    squared, absolute = np.square(measured).mean(), np.abs(measured).mean()
    return {"mse": Metric(float(squared), n=n), "mae": Metric(float(absolute), n=n)}
