"""neuralforecast's networks on the windows of a run, and ours trained as it trains those.

It has Adam at one rate, without a schedule, and tests the last weights; the study tests those of
the best validation, by which an iTransformer that overfits gains a quarter. The rate and the size
of a batch are given to it and are no defaults of its own; both train on the CPU.
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
from benchmarks.forecasting.forecasting import ALIKE, THEIRS, Forecasts
from benchmarks.forecasting.learner import ForecastData, ForecastModel
from benchmarks.study import MEASUREMENT
from orbits.runs.cell import Cell, Outcome
from orbits.runs.result import Case
from orbits.runs.study import Study

RATE, WINDOWS = 1e-3, 32
"""Learning rate and windows of a batch, of all channels each."""


def cells(study: Study, settings: Forecasts, data: dict[str, Any]) -> Iterator[Cell]:
    """Yield two cells for each model and seed: of its network there, and of ours."""
    task = {"series": data["name"], "horizon": data["horizon"], "lr": RATE}
    sizes = {name: getattr(settings, name) for name in ("n_layer", "n_head", "head_dim", "dropout")}
    for seed in settings.seeds:
        for kind in settings.models:
            arguments = {"kind": kind, "steps": settings.steps, "seed": seed, "data": data}
            for function, row in ((of_theirs, THEIRS), (of_ours, ALIKE)):
                case = Case(study.name, MEASUREMENT, f"{kind}{row}", seed=seed, setting=task)
                yield Cell(function, case, {**arguments, "sizes": sizes})


def of_theirs(
    kind: str,
    steps: int,
    seed: int,
    data: Mapping[str, Any],
    sizes: Mapping[str, Any],
    file: Path | None = None,
) -> Outcome:
    """Train neuralforecast's network of a kind and test it on the windows of the study."""
    import pandas

    library = importlib.import_module("neuralforecast")
    losses = importlib.import_module("neuralforecast.losses.pytorch")
    models = importlib.import_module("neuralforecast.models")
    made = ForecastData(**data, file=None if file is None else str(file))
    values = made.series.values
    (length, channels), (first, second, end) = values.shape, made.series.ends
    name, own = networks(channels, made.lookback, **sizes)[kind]
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


def of_ours(
    kind: str,
    steps: int,
    seed: int,
    data: Mapping[str, Any],
    sizes: Mapping[str, Any],
    file: Path | None = None,
) -> Outcome:
    """Train our network of a kind as neuralforecast trains its own, and test it."""
    made = ForecastData(**data, file=None if file is None else str(file))
    assert made.n_train is not None
    windows = made.sequences("train", made.n_train)
    torch.manual_seed(seed)
    model = ForecastModel(made.lookback, made.horizon, kind, **sizes).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(steps):
        batch = windows.__getitems__(torch.randint(len(windows), (WINDOWS,)).tolist())
        optimizer.zero_grad()
        (model(batch) - batch["future"]).square().mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return Outcome(errors(model, made.sequences("test", data["n_test"])))


def check_installed() -> None:
    """Refuse to go on without neuralforecast, which is looked for and not imported."""
    if importlib.util.find_spec("neuralforecast") is None:
        raise ValueError("--neuralforecast needs that package: pip install -e '.[forecasting]'")


def check(data: ForecastData, name: str) -> None:
    """Refuse a series with gaps, whose filled values neuralforecast would take for measured."""
    if not np.isfinite(data.series.values).all():
        raise ValueError(
            f"--neuralforecast takes no series with gaps, which {name} has: give --series"
        )


def networks(
    channels: int, lookback: int, n_layer: int, n_head: int, head_dim: int, dropout: float
) -> Mapping[str, tuple[str, dict[str, Any]]]:
    """Return neuralforecast's names and arguments of the study's networks, by kind."""
    width = n_head * head_dim
    patch = min(16, lookback)
    return {
        "dlinear": ("DLinear", {}),
        "patchtst": (
            "PatchTST",
            {
                "hidden_size": width, "linear_hidden_size": 2 * width, "n_heads": n_head,
                "encoder_layers": n_layer, "dropout": dropout, "fc_dropout": dropout,
                "patch_len": patch, "stride": max(1, patch // 2), "revin_subtract_last": False,
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
