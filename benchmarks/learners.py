"""What a cell trains: a model and its data, from plain data.

``config["learner"]`` names one of :data:`LEARNERS`; without it a cell learns orbits.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.compression_task import CompressionTask
from benchmarks.masked_text import MaskedTextData
from benchmarks.problem_data import ProblemData
from worldmodel.checkpoint import read_checkpoint, restored
from worldmodel.data import OrbitData, SequenceData
from worldmodel.gpt_task import GPTTask
from worldmodel.shard_data import ShardData
from worldmodel.tasks import ForceTask, NextTokenTask, load_task
from worldmodel.text import TextData
from worldmodel.text_task import TextTask
from worldmodel.token_task import TokenTask

Config = Mapping[str, Any]


class Learner(NamedTuple):
    """How a kind of cell makes its model and its data, and how it loads the trained model."""

    task: Callable[..., GPTTask]
    data: Callable[..., SequenceData]
    load: Callable[[Path], GPTTask] = load_task


def _orbits(data: Config, **model: Any) -> GPTTask:
    if data["population"] == "pretrain":
        return NextTokenTask(**model)
    return ForceTask(**model)


def _problem(data: Config, **model: Any) -> GPTTask:
    return TokenTask(ProblemData(**data).problem.vocab_size, **model)


def _compression(data: Config, **model: Any) -> GPTTask:
    return CompressionTask(ProblemData(**data).problem.vocab_size, **model)


def _load_compression(path: Path) -> GPTTask:
    return restored(CompressionTask, read_checkpoint(path), path)


def _text(data: Config, **model: Any) -> GPTTask:
    return TextTask(data["tokenizer"], **model)


LEARNERS = {
    "orbits": Learner(_orbits, OrbitData),
    "compression": Learner(_compression, ProblemData, _load_compression),
    "problem": Learner(_problem, ProblemData),
    "shards": Learner(_text, ShardData),
    "text": Learner(_text, TextData),
    "masked_text": Learner(_text, MaskedTextData),
}


def build(config: Config, warmup_steps: int) -> GPTTask:
    """Return the model of a cell, untrained.

    Args:
        config: The cell's configuration.
        warmup_steps: Steps of linear warm-up, at most a tenth of the cell's.
    """
    schedule: dict[str, Any] = {
        "lr": config["lr"],
        "warmup_steps": max(1, min(warmup_steps, config["steps"] // 10)),
    }
    if "direction_weight" in config:
        schedule["direction_weight"] = config["direction_weight"]
    return _learner(config).task(config["data"], **schedule, **config["model"])


def check(config: Config) -> None:
    """Refuse a cell whose model cannot be built, without allocating its weights.

    Raises:
        ValueError: Its model, optimiser, tokeniser or problem refuses a setting.
        TypeError: An argument that the attention does not take.
    """
    data = {name: value for name, value in config["data"].items() if name != "train_seed"}
    _check(json.dumps({"learner": config["learner"], "model": config["model"], "data": data}))


@functools.cache
def _check(config: str) -> None:
    """Build each different model once."""
    with torch.device("meta"):
        build({"lr": 1e-3, "steps": 1, **json.loads(config)}, warmup_steps=1)


def data(config: Config) -> SequenceData:
    """Return the data of a cell."""
    return _learner(config).data(**config["data"])


def load(config: Config, path: Path) -> GPTTask:
    """Return the trained model of a cell's checkpoint."""
    return _learner(config).load(path)


def _learner(config: Config) -> Learner:
    return LEARNERS[config.get("learner", "orbits")]
