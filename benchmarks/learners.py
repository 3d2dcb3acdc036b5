"""Learners: the pairs of a model and its data that a cell can train, by name.

A job names its learner. Where the code of a learner lies is written in :data:`LEARNERS` alone, so
that no study loads what another one trains, and no import follows from a file.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from benchmarks.training_options import Job, options
from orbits.runs.choices import check_choice
from orbits.runs.deferred import load as load_path
from worldmodel.data.sequences import SequenceData
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.load import load_model
from worldmodel.models.restored import Module, restored
from worldmodel.models.trained import TrainedModel

LEARNERS = {
    "compression": "benchmarks.recall.skills.autoencoder:LEARNER",
    "forecasting": "benchmarks.forecasting.learner:LEARNER",
    "images": "benchmarks.images.learner:LEARNER",
    "masked_text": "benchmarks.language.masked_text:LEARNER",
    "orbits": "benchmarks.orbit_learner:LEARNER",
    "problem": "benchmarks.recall.data:LEARNER",
    "problem_published": "benchmarks.recall.published_start:LEARNER",
    "shards": "benchmarks.language.text_learners:SHARDS",
    "text": "benchmarks.language.text_learners:TEXT",
    "worlds": "benchmarks.worlds.learner:LEARNER",
}
"""Import path of each :class:`Learner`."""


@dataclass(frozen=True)
class Learner:
    """A kind of model with its data.

    Attributes:
        model: Makes the untrained model from the data's arguments (a mapping), then by keyword
            the schedule and the model's arguments.
        data: Makes the data from its arguments.
        load: Makes the trained model from its checkpoint.
    """

    model: Callable[..., TrainedModel]
    data: Callable[..., SequenceData]
    load: Callable[[Path], TrainedModel] = load_model


def loader(kind: type[Module]) -> Callable[[Path], Module]:
    """Return a loader of checkpoints as models of a class that they do not tell."""
    return lambda path: restored(kind, read_checkpoint(path), path)


def get(name: str) -> Learner:
    """Return the learner called ``name``."""
    check_choice("learner", name, LEARNERS)
    learner = load_path(LEARNERS[name])
    assert isinstance(learner, Learner)
    return learner


def build(job: Job) -> TrainedModel:
    """Return the untrained model of a job."""
    schedule: dict[str, Any] = {
        "lr": job["lr"],
        "warmup_steps": max(1, min(options(job).warmup_steps, job["steps"] // 10)),
    }
    if "direction_weight" in job:
        schedule["direction_weight"] = job["direction_weight"]
    return get(job["learner"]).model(job["data"], **schedule, **job["model"])


def check(job: Job) -> None:
    """Refuse a job whose model cannot be built, without allocating its weights."""
    data = {name: value for name, value in job["data"].items() if name != "train_seed"}
    _check(json.dumps({"learner": job["learner"], "model": job["model"], "data": data}))


def check_encoder(job: Job, name: str) -> None:
    """Refuse what :func:`check` does, and an encoder of an attention that only looks back."""
    try:
        check(job)
    except TypeError as error:
        raise ValueError(f"{name} cannot be an encoder: {error}") from None


@functools.cache
def _check(job: str) -> None:
    """Build each different model once."""
    filled: Any = {"lr": 1e-3, "steps": 1, "seed": 0, **json.loads(job)}
    with torch.device("meta"), _Unfilled():
        build(filled)


class _Unfilled(TorchFunctionMode):
    """Mode in which weights get no start values; to draw those of none takes half of a build."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if getattr(function, "__module__", "") == torch.nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def data(job: Job) -> SequenceData:
    """Return the data of a job."""
    return get(job["learner"]).data(**job["data"])


def load(job: Job, path: Path) -> TrainedModel:
    """Return the trained model of a job's checkpoint."""
    return get(job["learner"]).load(path)
