"""The cells of recall studies: each trains a model on a problem and tests it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import learners, training
from benchmarks.rates import SWEPT
from benchmarks.recall.data import ProblemData
from benchmarks.recall.measures import Integers, Reals
from benchmarks.recall.sweep import Sweep
from benchmarks.study import MEASUREMENT
from benchmarks.training_options import Job, options
from orbits.runs.cell import Cell, Function, Outcome, Progress
from orbits.runs.result import Case, Metric
from orbits.runs.study import Study
from worldmodel.extrapolate import at_length
from worldmodel.models.base import GPTModel
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.training.callbacks import sharpened

VERSIONS = {"problem_published": 5}
"""Version of the cells of a learner whose recipe changed, above those of the studies."""


def cells(study: Study, settings: Sweep, function: Function | None = None) -> list[Cell]:
    """Return one cell per exercise, model, rate, decay and seed.

    Args:
        study: The study.
        settings: Its settings.
        function: Trains and tests; None for :func:`train_and_test`.
    """
    cells = []
    for exercise in settings.exercises():
        tests = {at: test.to_json() for at, test in exercise.tests.items()}
        for trial in settings.trials(exercise):
            job = settings.job(trial, exercise)
            learners.check(job)
            setting = {**{name: getattr(trial, name) for name in SWEPT}, **exercise.setting}
            case = Case(study.name, MEASUREMENT, trial.label, seed=trial.seed, setting=setting)
            version = VERSIONS.get(job["learner"], 1)
            arguments = {"job": job, "tests": tests}
            cells.append(Cell(function or train_and_test, case, arguments, version=version))
    return cells


def train_and_test(
    job: Job,
    tests: Mapping[str, Mapping[str, Any]],
    folder: Path,
    scratch: Path,
    progress: Progress,
) -> Outcome:
    """Train a model on its problem and test it."""
    model = trained(job, folder, scratch, progress)
    metrics = {**tested(model, job, tests), **of_training(model, job, folder)}
    return Outcome(metrics, device=training.device(job))


def trained(job: Job, folder: Path, scratch: Path, progress: Progress) -> GPTModel:
    """Train a model on its problem and return it, ready for tests."""
    model = training.train(job, folder, scratch, progress)
    assert isinstance(model, GPTModel)
    return model.to(training.torch_device(options(job))).eval()


def tested(model: GPTModel, job: Job, tests: Mapping[str, Mapping[str, Any]]) -> dict[str, Metric]:
    """Return the metrics of a model on its tests, whose names end in those of the tests."""
    metrics: dict[str, Metric] = {}
    for at, test in tests.items():
        data = ProblemData(**{**job["data"], **test})
        with at_length(model, data.problem.seq_len, None):
            given = answers(model, data, data.hparams["n_test"])
            shares = distributions(model, data, len(given)) if data.problem.weighs else None
        about = ("test", data.hparams["seed"], at)
        metrics |= data.problem.measure(given, *about)
        if shares is not None:
            metrics |= data.problem.measure_distributions(shares, *about)
    return metrics


def of_training(model: GPTModel, job: Job, folder: Path) -> dict[str, Metric]:
    """Return the metrics of a training: of its validation, its steps and its schedule."""
    accuracy = training.validated(model, job, folder, "val_accuracy")
    steps = read_checkpoint(folder / training.CHECKPOINT)["global_step"]
    metrics = {
        "val_accuracy": Metric(100 * accuracy, n=job["data"]["n_val"]),
        "steps": Metric(steps, n=1),
    }
    if "p" in (job["model"]["attention_args"] or {}):
        metrics["reweighted"] = Metric(sharpened(model), n=1)
    return metrics


def answers(model: GPTModel, data: ProblemData, n: int, split: str = "test") -> Integers:
    """Return the greedy answers to the first examples of a split, [n, L].

    Where a batch has been cut, behind everything that is asked, they are 0.
    """
    given = np.zeros((n, data.problem.seq_len), np.int64)
    for rows, logits in _logits(model, data, n, split):
        given[rows, : logits.shape[1]] = logits.argmax(dim=-1).cpu()
    return given


def distributions(model: GPTModel, data: ProblemData, n: int, split: str = "test") -> Reals:
    """Return the probabilities of all tokens for the first examples of a split, [n, L, V].

    As in :func:`answers` they are 0 where a batch has been cut.
    """
    given = np.zeros((n, data.problem.seq_len, data.problem.vocab_size))
    for rows, logits in _logits(model, data, n, split):
        given[rows, : logits.shape[1]] = logits.double().softmax(dim=-1).cpu()
    return given


@torch.no_grad()
def _logits(
    model: GPTModel, data: ProblemData, n: int, split: str
) -> Iterator[tuple[slice, Tensor]]:
    """Yield the examples' places and their logits, a batch [B, L, V] at a time."""
    start = 0
    for batch in data.sequences(split, n).batches(data.hparams["eval_batch_size"]):
        logits = model({"tokens": batch["tokens"].to(model.device)})
        yield slice(start, start + len(logits)), logits
        start += len(logits)
