"""The cells of bigram-backcopy: each trains a model, tests it, and looks at its attention."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

import attention
from attention import metrics as attention_metrics
from attention.layer import with_weights
from benchmarks import training
from benchmarks.recall import solve
from benchmarks.recall.backcopy import Backcopy, BackcopyStudy, BackcopySweep
from benchmarks.recall.backcopy_report import CUT, UNTRAINED
from benchmarks.recall.base import BASELINE
from benchmarks.recall.data import ProblemData
from benchmarks.training_options import Job
from benchmarks.variants import Variant
from orbits.runs.cell import Cell, Outcome, Progress
from orbits.runs.result import Metric
from worldmodel import maps
from worldmodel.models.backbone import Block
from worldmodel.models.text import TokenModel

CUTS = "elastic"
"""The variant whose offset is put into a trained softmax."""


def cells(study: BackcopyStudy, settings: BackcopySweep) -> list[Cell]:
    """Return one cell per exercise, model, rate, decay and seed."""
    for name in (*settings.attention, *settings.controls):
        attention.get(Variant(name).attention)  # refuses a linear mixer
    return solve.cells(study, settings, train_and_look)


def train_and_look(
    job: Job,
    tests: Mapping[str, Mapping[str, Any]],
    folder: Path,
    scratch: Path,
    progress: Progress,
) -> list[Outcome]:
    """Train a model, test it, and look at its attention, before the training too.

    Of a softmax, also with the offset of an elastic one put in after the training: what an offset
    does to weights that were learned without it.
    """
    model = solve.trained(job, folder, scratch, progress)
    assert isinstance(model, TokenModel)
    metrics = {**solve.tested(model, job, tests), **solve.of_training(model, job, folder)}
    data, device = ProblemData(**job["data"]), training.device(job)
    found = [
        Outcome({**metrics, **look(model, data)}, device=device),
        Outcome(look(training.untrained(job, TokenModel), data), arm=UNTRAINED, device=device),
    ]
    if job["model"]["attention"] == BASELINE:
        elastic = cut(model, job)
        metrics = {**solve.tested(elastic, job, tests), **look(elastic, data)}
        found.append(Outcome(metrics, arm=CUT, device=device))
    return found


def cut(model: TokenModel, job: Job) -> TokenModel:
    """Return a trained softmax as a model whose weights are ReLU(softmax - 1/i) in row i.

    Args:
        model: The model.
        job: The job of its training.
    """
    changed: Job = {**job, "model": {**job["model"], "attention": CUTS}}
    elastic = training.untrained(changed, TokenModel).to(model.device)
    elastic.load_state_dict(model.state_dict(), strict=False)  # all but the offset, which is 1
    return elastic


def look(model: TokenModel, data: ProblemData) -> dict[str, Metric]:
    """Return where the attention of the test rows goes, means over layers and heads.

    Args:
        model: The model, in evaluation mode.
        data: The data whose test rows it reads.

    Returns:
        Metrics of :class:`benchmarks.recall.backcopy.BackcopyStudy`: shares and masses in %.
    """
    problem, n = data.problem, data.hparams["n_test"]
    assert isinstance(problem, Backcopy)
    tokens = problem.examples("test", data.hparams["seed"], np.arange(n)).tokens
    copies = torch.from_numpy(tokens < problem.n_triggers)
    later = torch.ones_like(copies)
    later[:, 0] = False  # its only key is the first one
    kinds = {"": later, "_idle": later & ~copies, "_copying": later & copies}
    place, length, found = problem.marker_at, problem.seq_len, dict[str, list[float]]()
    for state in maps.layer_states(model, torch.from_numpy(tokens)):
        weights = state.weights.cpu().double()
        values = attention_metrics.masses(weights)
        for kind, rows in kinds.items():
            if rows.any():
                chosen = weights.transpose(1, 2)[rows]  # [rows, H, L]
                values |= _share(f"share{kind}", chosen, 0)
                values[f"missing{kind}"] = 100 * float(1 - chosen.sum(dim=-1).mean())
        if place is not None and place + 1 < length:
            values |= _share("received", weights[..., place + 1 :, :], place)
        norms = maps.by_position(state.value)["norm"]
        values["norm_v"] = float(norms[0] / norms[1:].mean())
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    means = {name: fmean(values) for name, values in found.items()}
    means["uniform"] = 100 * attention_metrics.uniform_sink_ratio(length)
    means["uniform_share"] = 100 * fmean(1 / seen for seen in range(2, length + 1))
    if place is not None and "received" in means:
        means["uniform_received"] = 100 * fmean(1 / seen for seen in range(place + 2, length + 1))
    if offsets := _offsets(model):
        means["tau"] = fmean(offsets)
    return {name: Metric(value, n=n) for name, value in means.items()}


def _share(name: str, weights: torch.Tensor, key: int) -> dict[str, float]:
    """Return the mean share of a key in the mass of rows [..., L] that have any, in %.

    Nothing where no row has any.
    """
    size = weights.abs()
    mass = size.sum(dim=-1)
    there = mass > 0
    return {name: 100 * float((size[..., key] / mass)[there].mean())} if there.any() else {}


def _offsets(model: TokenModel) -> list[float]:
    """Return the mean offset of each layer that has learned one."""
    layers = []
    for block in model.gpt.blocks:
        assert isinstance(block, Block)
        layers.append(with_weights(block.attention))
    return [float(x.learned["tau"].detach().mean()) for x in layers if "tau" in x.learned]
