"""The cells of learned offsets: trainings, and a reading of each model's layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import attention
from attention.layer import Attention
from benchmarks.language.checkpoints import TextCheckpoint
from benchmarks.language.learned_offsets import (
    CLOSE,
    FAR,
    GROUPS,
    NEAR,
    STARTED,
    LearnedOffsets,
    LearnedOffsetsStudy,
)
from benchmarks.language.models import check_text, models_of, training_cells
from orbits.runs.cell import Cell, Outcome
from orbits.runs.result import Metric
from worldmodel.models import optim
from worldmodel.models.checkpoint import read_checkpoint

Array = npt.NDArray[np.float64]
LEAST_LAYERS, LEAST_CONTEXT = 3, CLOSE.stop + 1
DIGITS = 5
"""Decimals of the numbers that a line keeps."""


def cells(study: LearnedOffsetsStudy, settings: LearnedOffsets) -> list[Cell]:
    """Return trainings and a reading of each."""
    models = models_of(settings)
    for model in models:
        known = attention.names()
        learned = attention.get(model.attention).learned if model.attention in known else {}
        if not {"tau", "bias"} & set(learned):
            raise ValueError(
                f"{model.attention} learns neither an offset nor a distance bias; take lazy, "
                "lazy_no_elastic, lazy_no_rope or elastic"
            )
        if model.context < LEAST_CONTEXT:
            raise ValueError(
                f"{model.label} has a context of {model.context}; distances up to {CLOSE.stop - 1} "
                f"are compared with larger ones, which takes {LEAST_CONTEXT}"
            )
    if not settings.checkpoints and settings.n_layer < LEAST_LAYERS:
        raise ValueError(
            f"n_layer must be at least {LEAST_LAYERS}, a first, a middle and an upper layer, got "
            f"{settings.n_layer}"
        )
    if not settings.checkpoints:
        check_text(models, 1, models[0].context)
    readings = [model.evaluation(study, read, {}, {"label": model.label}) for model in models]
    return [*training_cells(models), *readings]


def read(label: str, model: Path) -> list[Outcome]:
    """Read offsets and biases of a language model.

    Returns:
        An outcome per layer, with all numbers, then per group of layers, then the start.
    """
    checkpoint = TextCheckpoint.read(model)
    gpt = checkpoint.load().gpt
    layers = [x for x in gpt.modules() if isinstance(x, Attention)]
    if len(layers) < LEAST_LAYERS:
        raise ValueError(f"{label} has {len(layers)} layers, fewer than {LEAST_LAYERS}")
    context = checkpoint.context
    learned = [_numbers(layer, context) for layer in layers]
    summaries = [summary(**each) for each in learned]
    outcomes = []
    for number, (each, values) in enumerate(zip(learned, summaries, strict=True), 1):
        kept = {name: np.round(x, DIGITS).tolist() for name, x in each.items()}
        about = {"layer": number, "of": label}
        outcomes.append(checkpoint.outcome(values, details=kept, setting=about))
    reach = {"reach": Metric(_reach(checkpoint), n=1)}
    about = {"layer": None, "of": label}
    for name, members in groups(len(layers)).items():
        values = _mean([summaries[at] for at in members])
        named = f"{label}, {name}"
        outcomes.append(checkpoint.outcome({**values, **reach}, variant=named, setting=about))
    start = _started(layers[0], context)
    named = f"{label}, {STARTED}"
    outcomes.append(checkpoint.outcome({**start, **reach}, variant=named, setting=about))
    return outcomes


def groups(n_layer: int) -> dict[str, range]:
    """Return the layers, from 0, of each group: first, the first half of the others, the rest."""
    middle = 1 + (n_layer - 1) // 2
    parts = (range(1), range(1, middle), range(middle, n_layer), range(n_layer))
    return dict(zip(GROUPS, parts, strict=True))


def summary(tau: Array | None = None, bias: Array | None = None) -> dict[str, Metric]:
    """Return the statistics that are compared between groups of layers."""
    found = {}
    if tau is not None:
        found["tau"] = tau.mean()
        found["tau_spread"] = tau.std()
    if bias is not None:
        found["slope"] = _slopes(bias).mean() * (bias.shape[1] - 1)
        close, larger = bias[:, CLOSE.start : CLOSE.stop], bias[:, CLOSE.stop :]
        found["dip"] = (close.mean(axis=1) - larger.mean(axis=1)).mean()
        if bias.shape[1] > NEAR + 1:
            near, far = (_slopes(part).mean() for part in (bias[:, :NEAR], bias[:, NEAR:]))
            found["bend"] = (near - far) * NEAR
        if bias.shape[1] > FAR:
            found["far"] = _slopes(bias[:, NEAR : FAR + 1]).mean() * (FAR - NEAR)
    return {name: Metric(float(value), n=1) for name, value in found.items()}


def _slopes(bias: Array) -> Array:
    """Return the rise per token of a straight line through the penalties of each head, [H]."""
    centred = np.arange(bias.shape[1]) - (bias.shape[1] - 1) / 2
    rise: Array = (bias * centred).sum(axis=1) / np.square(centred).sum()
    return rise


def _numbers(layer: Attention, context: int) -> dict[str, Array]:
    """Return a layer's learned numbers; biases at distances that a window has."""
    found = {}
    for name in ("tau", "bias"):
        if name in layer.learned:
            values = layer.learned[name].detach().double().cpu().numpy()
            found[name] = values[:, :context] if name == "bias" else values
    return found


def _started(layer: Attention, context: int) -> dict[str, Metric]:
    """Return the summary before training."""
    started: dict[str, Array] = {}
    if "tau" in layer.learned:
        started["tau"] = np.full(layer.n_head, float(layer.spec.tau))
    if "bias" in layer.learned:
        started["bias"] = np.zeros((layer.n_head, context))
    return summary(**started)


def _mean(summaries: Sequence[Mapping[str, Metric]]) -> dict[str, Metric]:
    """Return the mean over layers."""
    n = len(summaries)
    return {x: Metric(sum(each[x].value for each in summaries) / n, n=n) for x in summaries[0]}


def _reach(checkpoint: TextCheckpoint) -> float:
    """Return the sum of the learning rates of a training."""
    steps, known = read_checkpoint(checkpoint.path)["global_step"], checkpoint.hyper_parameters
    schedule = (known["warmup_steps"], steps, known["min_lr_ratio"])
    return float(known["lr"] * sum(optim.factor(step, *schedule) for step in range(steps)))
