"""The cells of forecasts: floors, and a training per series, horizon, model, rate and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks import learners, rates, training
from benchmarks.forecasting import neuralforecast, series
from benchmarks.forecasting.errors import errors
from benchmarks.forecasting.floors import RIDGE_WINDOWS, floors
from benchmarks.forecasting.forecasting import ENCODER, Forecasts
from benchmarks.forecasting.learner import ForecastData
from benchmarks.study import MEASUREMENT
from benchmarks.training_options import Job, options
from benchmarks.variants import variants
from orbits.runs.cell import Cell, Outcome, Progress, leave_out
from orbits.runs.figure import figure_path
from orbits.runs.result import Case
from orbits.runs.study import Study


def cells(study: Study, settings: Forecasts) -> list[Cell]:
    """Return the cells of each series; one that is skipped where its file is not there."""
    made: list[Cell] = []
    labels = {name: name if name in series.KNOWN else Path(name).name for name in settings.series}
    for name, label in labels.items():
        # Figures are files of their names.
        figure = figure_path(Path(), label)
        if (same := [x for x in labels if figure_path(Path(), labels[x]) == figure]) != [name]:
            raise ValueError(f"{' and '.join(same)} are both called {label} in figures; rename one")
        if name != label and label in series.KNOWN:
            raise ValueError(f"{name} is called as the known series {label}; rename the file")
        try:
            file = series.find(name, settings.data)
        except series.Missing as reason:
            case = Case(study.name, MEASUREMENT, "all", setting={"series": label})
            made.append(Cell(leave_out, case, {"why": str(reason)}))
            continue
        gaps = settings.gaps
        if gaps == "own":
            gaps = "carry" if file is None else "refuse"
        data: dict[str, Any] = {"name": label, "gaps": gaps, "drop": list(settings.drop)}
        data |= {"n_val": settings.n_val, "n_test": settings.n_test}
        inputs = {} if file is None else {"file": file}
        for horizon in settings.horizons:
            of_task = {**data, "lookback": settings.lookback, "horizon": horizon}
            # Refuses what cannot be read or cut, before anything is trained.
            windows = ForecastData(**of_task, file=None if file is None else str(file))
            if settings.neuralforecast:
                neuralforecast.check(windows, name)
            for cell in _of_task(study, settings, of_task):
                made.append(Cell(cell.function, cell.case, cell.arguments, inputs=inputs))
    return made


def _of_task(study: Study, settings: Forecasts, data: dict[str, Any]) -> Iterator[Cell]:
    """Yield the cells of one series and horizon."""
    task = {"series": data["name"], "horizon": data["horizon"]}
    case = Case(study.name, MEASUREMENT, "floors", setting={**task, "lr": None})
    yield Cell(floors, case, {"data": data, "ridge_windows": RIDGE_WINDOWS})
    sizes = {name: getattr(settings, name) for name in ("n_layer", "n_head", "head_dim")}
    tokens = -(-settings.lookback // settings.patch)
    models: dict[str, dict[str, Any]] = {
        name: {"kind": name, "dropout": settings.dropout, **sizes} for name in settings.models
    }
    # A mixer that looks back has no word about it: its cells are those of runs without encoders.
    for names, ahead in ((settings.attention, {}), (settings.encoders, {"causal": False})):
        for variant in variants(names, settings.exponents):
            arguments = variant.arguments(tokens) or None
            mixer = {"attention": variant.attention, "attention_args": arguments, **ahead}
            label = f"{variant.label}{ENCODER if ahead else ''}"
            models[label] = {"kind": "mixer", "patch": settings.patch, **mixer, **sizes}
    for label, model in models.items():
        for job in rates.jobs(settings, "forecasting", model, data, keep_best=True):
            learners.check_encoder(job, label.removesuffix(ENCODER))
            setting = {**task, "lr": job["lr"]}
            case = Case(study.name, MEASUREMENT, label, seed=job["seed"], setting=setting)
            yield Cell(train_and_test, case, {"job": job})
    if settings.neuralforecast:
        yield from neuralforecast.cells(study, settings, data)


def train_and_test(
    job: Job, folder: Path, scratch: Path, progress: Progress, file: Path | None = None
) -> Outcome:
    """Train a model on a series and test its weights of the best validation."""
    job = {**job, "data": {**job["data"], "file": None if file is None else str(file)}}
    training.train(job, folder, scratch, progress)
    model = learners.load(job, folder / training.BEST)
    device = training.device(job)
    model.to(training.torch_device(options(job))).eval()

    def forecast(batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        with torch.no_grad():
            return model({"past": batch["past"].to(model.device)}).cpu()

    data = ForecastData(**job["data"])
    metrics = errors(forecast, data.sequences("test", job["data"]["n_test"]))
    chosen = errors(forecast, data.sequences("val", job["data"]["n_val"]))
    return Outcome({**metrics, "val_mse": chosen["mse"]}, device=device)
