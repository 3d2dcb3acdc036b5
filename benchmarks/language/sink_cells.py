"""The cells of attention sinks: trainings, and the attention of each model on every text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

import attention
from attention import metrics as attention_metrics
from benchmarks.language import texts
from benchmarks.language.checkpoints import TextCheckpoint
from benchmarks.language.models import (
    EvaluatedModel,
    check_text,
    models_of,
    to_train,
    training_cells,
)
from benchmarks.language.sink import FIRST, KINDS, TEXTS, Sinks, SinkStudy
from benchmarks.variants import variants
from orbits.runs import artefact
from orbits.runs.cell import Cell, Outcome
from orbits.runs.manifest import manifest
from orbits.runs.result import Metric
from worldmodel import extrapolate, maps
from worldmodel.models.text import TextModel
from worldmodel.text.tokenizers import load_tokenizer

STORY = "Once upon a time, in a land far far away, there lived"
STATISTICS = "positions.npz"


def cells(study: SinkStudy, settings: Sinks) -> list[Cell]:
    """Return trainings and the measurements of each on every text."""
    models: list[tuple[EvaluatedModel, int | None]]
    models = [(model, None) for model in models_of(settings)]
    if not settings.checkpoints:
        models += [
            (to_train(settings, masked, seed, place), place)
            for masked in variants((settings.mask_attention,), settings.exponents)
            for place in settings.mask_at
            for seed in settings.seeds
        ]
    text, measurements = settings.eval_text(), []
    for model, mask_at in models:
        attention.get(model.attention)  # refuses a linear mixer
        model.check_length(len(load_tokenizer(model.tokenizer).encode(STORY)))
        for window_text in TEXTS if mask_at is None else TEXTS[:1]:
            arguments: dict[str, Any] = {
                "window_text": window_text,
                "n_windows": settings.n_windows,
                "mask_at": mask_at,
                # A fixed token stands in the text of its training alone.
                **({"text": text} if text and mask_at is None else {}),
            }
            setting = {"text": window_text, "mask_at": mask_at}
            measurements.append(model.evaluation(study, measure_attention, setting, arguments))
    every = [model for model, _ in models]
    for context in {model.context for model in every}:
        same = [model for model in every if model.context == context]
        check_text(same, 1, context * settings.n_windows, text)
    return [*training_cells(every), *measurements]


def measure_attention(
    window_text: str,
    n_windows: int,
    mask_at: int | None,
    model: Path,
    folder: Path,
    text: Mapping[str, Any] | None = None,
) -> Outcome:
    """Measure the attention of all layers of a language model on one text."""
    checkpoint = TextCheckpoint.read(model)
    language_model = checkpoint.load()
    with texts.skipping():
        windows, scored = _windows(checkpoint, language_model, window_text, n_windows, text)
    length = windows.shape[1] - 1
    shares: dict[str, list[float]] = {}
    sinks: list[Tensor] = []
    statistics: dict[str, list[Tensor]] = {}
    with extrapolate.at_length(language_model, length, None):
        losses = extrapolate.losses(language_model, windows).mean(dim=1)
        for state in maps.layer_states(language_model, windows[:, :-1]):
            sinks.append(100 * attention_metrics.sink_ratio(state.weights))
            values = attention_metrics.masses(state.weights)
            if mask_at is not None and mask_at + 1 < length:
                after = state.weights[..., mask_at + 1 :, mask_at]
                values["received"] = 100 * float(after.double().mean())
            for name, value in values.items():
                shares.setdefault(name, []).append(value)
            kinds = zip(KINDS, (state.query, state.key, state.value, state.hidden), strict=True)
            for kind, tensor in kinds:
                for name, table in maps.by_position(tensor).items():
                    statistics.setdefault(f"{name}_{kind}", []).append(table.cpu())
    n = len(windows)
    measures = {name: Metric(fmean(values), n=n) for name, values in shares.items()}
    measures["sink_head"] = Metric(float(torch.cat(sinks).max()), n=n)
    measures["loss@1x"] = Metric.mean(losses.cpu().numpy())
    measures["uniform"] = Metric(100 * attention_metrics.uniform_sink_ratio(length), n=n)
    if mask_at is not None and "received" in measures:
        rows = range(mask_at + 2, length + 1)  # keys that each row after the token sees
        measures["uniform_received"] = Metric(100 * fmean(1 / seen for seen in rows), n=n)
    tables = {name: torch.stack(values) for name, values in statistics.items()}
    for name in FIRST:
        mean = tables[name].mean(dim=0)
        measures[name] = Metric(float(mean[0] / mean[1:].mean()), n=n)
    arrays = {name: table.numpy() for name, table in tables.items()}
    about = manifest({"text": window_text, "mask_at": mask_at}, seed=None)
    artefact.save_arrays(folder / STATISTICS, arrays, about)
    return checkpoint.outcome(measures, scored, files={"statistics": STATISTICS})


def _windows(
    checkpoint: TextCheckpoint,
    language_model: TextModel,
    window_text: str,
    n_windows: int,
    text: Mapping[str, Any] | None,
) -> tuple[Tensor, dict[str, Any] | None]:
    """Return the windows, int64 [N, L + 1], and the record of a text that is not the model's."""
    if window_text == "story":
        return torch.from_numpy(language_model.tokenizer.encode(STORY).astype(np.int64))[None], None
    n_tokens, scored = checkpoint.context * n_windows, None
    if text is None:
        windows = checkpoint.held_out(checkpoint.context, n_tokens)
    else:
        stream, scored = texts.stream_of_test(language_model.tokenizer, **text)
        windows = texts.cut(stream, checkpoint.context, n_tokens)
    if window_text == "repeated":
        windows = windows[:, :1].expand(-1, windows.shape[1]).contiguous()
    return windows, scored
