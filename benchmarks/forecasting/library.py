"""neuralforecast's networks on the windows of a run, and ours trained by its recipe.

Its recipe has a learning rate without a schedule and tests the last weights; the study's own tests
those of the best validation, by which an iTransformer that overfits gains a quarter.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.forecasting.errors import errors, errors_of
from benchmarks.forecasting.forecasting import BY_RECIPE, LIBRARY, Forecasts
from benchmarks.forecasting.learner import ForecastData, ForecastModel
from benchmarks.study import MEASUREMENT
from orbits.runs.cell import Cell, Outcome, Skipped
from orbits.runs.result import Case
from orbits.runs.study import Study

RATE, WINDOWS = 1e-3, 32
"""neuralforecast's own learning rate, and windows of a batch."""


def cells(study: Study, settings: Forecasts, data: dict[str, Any]) -> Iterator[Cell]:
    """Yield two cells for each model and seed: of its network there, and of ours by its recipe."""
    task = {"series": data["name"], "horizon": data["horizon"], "lr": RATE}
    width = settings.n_head * settings.head_dim
    for seed in settings.seeds:
        for kind in settings.models:
            of_network = {"kind": kind, "steps": settings.steps, "seed": seed, "data": data}
            sizes = {
                "n_layer": settings.n_layer, "n_head": settings.n_head, "width": width,
                "dropout": settings.dropout,
            }  # fmt: skip
            for function, row in ((of_library, LIBRARY), (by_its_recipe, BY_RECIPE)):
                case = Case(study.name, MEASUREMENT, f"{kind}{row}", seed=seed, setting=task)
                yield Cell(function, case, {**of_network, **sizes})


def of_library(
    kind: str,
    steps: int,
    seed: int,
    data: Mapping[str, Any],
    n_layer: int,
    n_head: int,
    width: int,
    dropout: float,
    file: Path | None = None,
) -> Outcome:
    """Train neuralforecast's network of a kind and test it on the windows of the study."""
    if importlib.util.find_spec("neuralforecast") is None:
        raise Skipped("neuralforecast is not installed: pip install neuralforecast")
    import pandas

    library = importlib.import_module("neuralforecast")
    losses = importlib.import_module("neuralforecast.losses.pytorch")
    models = importlib.import_module("neuralforecast.models")
    made = ForecastData(**data, file=None if file is None else str(file))
    values = made.series.values
    if not np.isfinite(values).all():
        raise Skipped(f"{data['name']} has gaps, which neuralforecast would take for values")
    (length, channels), (first, second, end) = values.shape, made.series.ends
    name, own = networks(n_layer, n_head, width, dropout, channels)[kind]
    windows = WINDOWS if "n_series" in own else WINDOWS * channels  # of all channels, or of one
    network = getattr(models, name)(
        **own, h=made.horizon, input_size=made.lookback, loss=losses.MSE(), max_steps=steps,
        learning_rate=RATE, windows_batch_size=windows, random_seed=seed,
        enable_progress_bar=False, logger=False, accelerator="cpu",
    )  # fmt: skip
    frame = pandas.DataFrame(
        {
            "unique_id": np.repeat(np.arange(channels), length),
            "ds": np.tile(np.arange(length), channels),
            "y": values.T.reshape(-1),
        }
    )
    parts = {"val_size": second - first, "test_size": end - second}
    told = library.NeuralForecast(models=[network], freq=1).cross_validation(
        frame[frame["ds"] < end], **parts, n_windows=None, step_size=1
    )
    # The last step that is read tells a window.
    last = made.sequences("test", data["n_test"]).starts + made.lookback - 1
    told = told[told["cutoff"].isin(last)]
    expected = len(last) * channels * made.horizon
    if len(told) != expected:
        raise ValueError(f"neuralforecast answered {len(told)} steps of {expected}")
    by_window = told.sort_values(["cutoff", "ds", "unique_id"])
    forecast, future = (
        by_window[column].to_numpy(np.float64).reshape(len(last), -1) for column in (name, "y")
    )
    return Outcome(errors_of(forecast, future))


def by_its_recipe(
    kind: str,
    steps: int,
    seed: int,
    data: Mapping[str, Any],
    n_layer: int,
    n_head: int,
    width: int,
    dropout: float,
    file: Path | None = None,
) -> Outcome:
    """Train our network of a kind as neuralforecast trains its own, and test it."""
    made = ForecastData(**data, file=None if file is None else str(file))
    assert made.n_train is not None
    windows = made.sequences("train", made.n_train)
    torch.manual_seed(seed)
    model = ForecastModel(
        made.lookback, made.horizon, kind, n_layer=n_layer, n_head=n_head,
        head_dim=width // n_head, dropout=dropout,
    ).train()  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(steps):
        batch = windows.__getitems__(torch.randint(len(windows), (WINDOWS,)).tolist())
        measured = batch["future"].isfinite()
        optimizer.zero_grad()
        (model(batch) - batch["future"])[measured].square().mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return Outcome(errors(model, made.sequences("test", data["n_test"])))


def networks(
    n_layer: int, n_head: int, width: int, dropout: float, channels: int
) -> Mapping[str, tuple[str, dict[str, Any]]]:
    """Return neuralforecast's names and arguments of the study's networks, by kind."""
    return {
        "dlinear": ("DLinear", {}),
        "patchtst": (
            "PatchTST",
            {
                "hidden_size": width, "linear_hidden_size": 2 * width, "n_heads": n_head,
                "encoder_layers": n_layer, "dropout": dropout, "fc_dropout": dropout,
                "patch_len": 16, "stride": 8, "revin_subtract_last": False,
            },
        ),
        "itransformer": (
            "iTransformer",
            {
                "n_series": channels, "hidden_size": width, "n_heads": n_head,
                "e_layers": n_layer, "d_ff": 4 * width, "dropout": dropout,
            },
        ),
    }  # fmt: skip
