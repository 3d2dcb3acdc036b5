"""Cells of small trainings on orbits, for tests of what every training owes its cell."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import training
from benchmarks.training_options import Job
from benchmarks.worker import prepare
from orbits.runs import cell as runner
from orbits.runs.cell import Cell, Outcome, Progress
from orbits.runs.result import Case, Result

ORBITS = {"protocol": "identifiable", "protocol_args": {"n_bins": 128}}


def job(population: str, how: dict[str, Any], *, batch_size: int = 32, **changes: Any) -> Job:
    """Return a job: a world model for the population ``pretrain``, a force head for ``force``."""
    model = {
        **ORBITS,
        "input": "bin_centres",
        "attention": "softmax",
        "n_layer": 2,
        "n_head": 2,
        "head_dim": 16,
        "optimizer": changes.pop("optimizer", "muon"),
    }
    data = {**ORBITS, "population": population, "n_test": 100, "batch_size": batch_size}
    found: Any = {
        "learner": "orbits",
        "model": model,
        "data": {**data, "train_seed": 0},
        "seed": 0,
        "lr": 3e-3,
        "steps": 60,
        "training": how,
        **changes,
    }
    return found


def cell(job: Job, pretrained: Cell | None = None) -> Cell:
    """Return the cell of a job, with the cell whose backbone it starts from."""
    case = Case(study="test", kind="training", variant="softmax", seed=0)
    if pretrained is None:
        return Cell(train, case, {"job": job})
    return Cell(fine_tune, case, {"job": job}, needs={"pretrained": pretrained})


def compute(
    cell: Cell, out: Path, progress: Callable[[int, int], None] = lambda *_: None
) -> Result:
    """Compute a cell that tells of every step, and return its result."""
    prepare()
    (out / "cells").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runner, "_progress", lambda *_: contextlib.nullcontext(progress))
        runner.compute(cell, out)
    (result,) = cell.results(out)
    return result


def train(job: Job, folder: Path, scratch: Path, progress: Progress) -> Outcome:
    """Train from random weights."""
    training.train(job, folder, scratch, progress)
    return _outcome(job, folder)


def fine_tune(
    job: Job, pretrained: Path, folder: Path, scratch: Path, progress: Progress
) -> Outcome:
    """Train from a pre-trained backbone."""
    training.train(job, folder, scratch, progress, pretrained / training.CHECKPOINT)
    return _outcome(job, folder)


def _outcome(job: Job, folder: Path) -> Outcome:
    loss = training.last_value(folder / training.CURVES, "val_loss")
    return Outcome({"val_loss": loss}, device=training.device(job))
