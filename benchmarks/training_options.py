"""Jobs of training as plain data; imports nothing heavy."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Required, TypedDict

CHOICES = {
    "accelerator": ("auto", "cpu", "cuda"),
    "strategy": ("auto", "ddp", "fsdp2"),
    "precision": ("32-true", "64-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true"),
}
"""Allowed values of fields of :class:`Training`."""


@dataclass(frozen=True)
class Training:
    """Options of training beside its data, steps and learning rate.

    Attributes:
        warmup_steps: Steps of linear warm-up, at most a tenth of all steps.
        accelerator: ``cuda``, ``cpu``, or ``auto`` for the best there is.
        devices: Processes of one training, one a device, each with its own share of a step;
            fine-tuning takes one.
        strategy: Sharing of a model by several devices: ``ddp`` or ``fsdp2``.
        precision: Lightning's name of the arithmetic.
        checkpoint_steps: A killed training continues from the last multiple of these steps.
    """

    warmup_steps: int = 50
    accelerator: str = "auto"
    devices: int = 1
    strategy: str = "auto"
    precision: str = "32-true"
    checkpoint_steps: int = 250

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
        for name, least in (("devices", 1), ("checkpoint_steps", 1), ("warmup_steps", 0)):
            if (value := getattr(self, name)) < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")

    def changes(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults.

        A job holds these alone, so that the address of its cell outlives new fields.
        """
        return {
            each.name: getattr(self, each.name)
            for each in dataclasses.fields(self)
            if getattr(self, each.name) != each.default
        }


class Threshold(TypedDict):
    """A logged metric and the value that it must exceed."""

    metric: str
    above: float


class Job(TypedDict, total=False):
    """One training as plain data, the argument of a cell.

    Attributes:
        learner: Learner: a key of :data:`benchmarks.learners.LEARNERS`.
        model: Arguments of the model.
        data: Arguments of the data.
        seed: Seed of the initial weights.
        lr: Largest learning rate.
        steps: Most optimiser steps.
        val_steps: Steps between two validations; by default a tenth of all.
        direction_weight: Weight of the direction in the loss of a force head.
        any_law: Whether a backbone may come from the world of another law.
        stop_when: Stop at a validation that passes this, with re-weighting on.
        sharpen_after: Step from which re-weighting is on.
        sharpen_ramp: Steps over which its exponent then rises from 1 to p.
        sharpen_when: Re-weighting comes on at a validation that passes this.
        keep_best: Keep the checkpoint of the lowest validation loss beside the last one.
        training: Fields of :class:`Training` that differ from their defaults.
    """

    learner: Required[str]
    model: Required[dict[str, Any]]
    data: Required[dict[str, Any]]
    seed: Required[int]
    lr: Required[float]
    steps: Required[int]
    val_steps: int
    direction_weight: float
    any_law: bool
    stop_when: Threshold
    sharpen_after: int
    sharpen_ramp: int
    sharpen_when: Threshold
    keep_best: bool
    training: dict[str, Any]


def options(job: Job) -> Training:
    """Return the options of a job's training."""
    return Training(**job.get("training", {}))
