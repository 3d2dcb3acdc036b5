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
from benchmarks import training
from benchmarks.attention_shares import shares_of
from benchmarks.recall import solve
from benchmarks.recall.backcopy import Backcopy, BackcopyStudy, BackcopySweep
from benchmarks.recall.data import ProblemData
from benchmarks.training_options import Job
from benchmarks.variants import Variant
from orbits.runs.cell import Cell, Outcome, Progress
from orbits.runs.result import Metric
from worldmodel import maps
from worldmodel.models.text import TokenModel


def cells(study: BackcopyStudy, settings: BackcopySweep) -> list[Cell]:
    """Return one cell per exercise, model, rate, decay and seed."""
    for name in settings.attention:
        attention.get(Variant(name).attention)  # refuses a linear mixer
    return solve.cells(study, settings, train_and_look)


def train_and_look(
    job: Job,
    tests: Mapping[str, Mapping[str, Any]],
    folder: Path,
    scratch: Path,
    progress: Progress,
) -> Outcome:
    """Train a model on its problem, test it, and measure its attention on the same rows."""
    model = solve.trained(job, folder, scratch, progress)
    metrics = solve.tested(model, job, tests, folder)
    assert isinstance(model, TokenModel)
    for test in tests.values():
        metrics |= look(model, ProblemData(**{**job["data"], **test}))
    return Outcome(metrics, device=training.device(job))


def look(model: TokenModel, data: ProblemData) -> dict[str, Metric]:
    """Return where the attention of the test rows goes, means over layers and heads.

    Args:
        model: The model, in evaluation mode.
        data: The data whose test rows it reads.
    """
    problem, n = data.problem, data.hparams["n_test"]
    assert isinstance(problem, Backcopy)
    tokens = problem.examples("test", data.hparams["seed"], np.arange(n)).tokens
    copies = torch.from_numpy(problem.triggered(tokens))
    ordinary = ~copies
    ordinary[:, 0] = False  # its only key is the first one
    place, found = problem.marker_at, dict[str, list[float]]()
    for state in maps.layer_states(model, torch.from_numpy(tokens)):
        weights = state.weights.cpu()
        values = shares_of(weights)
        first = 100 * weights[..., 0].mean(dim=1).double()  # over heads, [N, L]
        values["sink_idle"] = float(first[ordinary].mean())
        if copies.any():
            values["sink_copying"] = float(first[copies].mean())
        if place is not None and place + 1 < problem.seq_len:
            values["received"] = 100 * float(weights[..., place + 1 :, place].double().mean())
        norms = maps.by_position(state.value)["norm"]
        values["norm_v"] = float(norms[0] / norms[1:].mean())
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    means = {name: fmean(values) for name, values in found.items()}
    means["uniform"] = 100 * attention_metrics.uniform_sink_ratio(problem.seq_len)
    if place is not None and "received" in means:
        rows = range(place + 2, problem.seq_len + 1)  # keys that each row after the marker sees
        means["uniform_received"] = 100 * fmean(1 / seen for seen in rows)
    return {name: Metric(value, n=n) for name, value in means.items()}
