"""Cells: fine-tunings tested at their best validation and last step; a backbone's entropy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention import metrics
from attention.layer import Attention, with_weights
from benchmarks import training
from benchmarks.newton import exam
from benchmarks.newton.cells import ERRORS, predicted_forces
from benchmarks.training import BEST, CHECKPOINT, CURVES
from benchmarks.training_options import Job, options
from orbits.runs.cell import Outcome, Progress
from symreg.exponents import prediction_metrics
from worldmodel.data.orbits import OrbitData
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.load import load_model
from worldmodel.models.orbit import OrbitModel
from worldmodel.models.predictions import read_rows

ASKED = {"last": CHECKPOINT, "stopped": BEST}
"""Checkpoints of a fine-tuning that are tested: of the last step, and of the best validation."""
ROWS = {"": 0, ", star": 1}
"""Rows whose entropy is measured, by their distance behind the rows with a force: a planet's row,
and the star's at the same time, which follows it."""


def tune(
    job: Job, pretrained: Path, ceiling: Path, folder: Path, scratch: Path, progress: Progress
) -> list[Outcome]:
    """Fine-tune a force head on a backbone; ask it where validation was best and at the end.

    Args:
        job: The training.
        pretrained: The folder of the backbone's cell.
        ceiling: The folder of :func:`benchmarks.newton.cells.causal_ceiling`.
        folder: The cell's folder.
        scratch: Scratch folder of the cell.
        progress: Told how far training is.

    Returns:
        An outcome for each of :data:`ASKED`: those of :func:`benchmarks.newton.exam.measure` in the
        training box, ``r2_log_train`` of the labelled sequences and the ``step`` of the checkpoint.
    """
    training.train(job, folder, scratch, progress, pretrained / CHECKPOINT)
    data, how = OrbitData(**job["data"]), options(job)
    best = exam.load(ceiling / ERRORS)
    outcomes = []
    for asked, name in ASKED.items():
        model = load_model(folder / name)
        test = predicted_forces(model, data.test_dataloader(), how)
        seen = predicted_forces(model, data.labelled_dataloader(), how)
        trained = prediction_metrics(seen["force"].numpy(), seen["force_predicted"].numpy())
        measured: dict[str, Any] = {
            **exam.measure({exam.BOX: test}, best, {}),
            "r2_log_train": trained["r2_log"],
            "step": read_checkpoint(folder / name)["global_step"],
        }
        there = {metric: value for metric, value in measured.items() if value is not None}
        files = {"curves": CURVES} if asked == "last" else {}
        outcomes.append(
            Outcome(there, files=files, setting={"asked": asked}, device=training.device(job))
        )
    return outcomes


def attention_entropy(data: Mapping[str, Any], pretrained: Path) -> Outcome:
    """Measure how wide a backbone attends at the rows at which forces are asked.

    Args:
        data: Labelled sequences, of which the validation's are read.
        pretrained: The folder of the backbone's cell.

    Returns:
        ``entropy@block N``, the mean over sequences, heads and the rows that are asked, in nats;
        ``entropy@block N, star`` over the star's rows beside them.
    """
    model = load_model(pretrained / CHECKPOINT)
    assert isinstance(model, OrbitModel)
    found: dict[str, list[float]] = {}
    sizes = []
    for batch in OrbitData(**data).val_dataloader():
        sizes.append(len(batch["tokens"]))
        for name, value in row_entropies(model.eval(), batch).items():
            found.setdefault(name, []).append(value)
    total = sum(sizes)
    return Outcome(
        {
            f"entropy@{name}": sum(n * x for n, x in zip(sizes, each, strict=True)) / total
            for name, each in found.items()
        }
    )


@torch.no_grad()
def row_entropies(model: OrbitModel, batch: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the mean entropy of attention by block and kind of row, see :data:`ROWS`.

    Args:
        model: In evaluation mode.
        batch: Labelled sequences, whose forces are all given at the same rows.
    """
    (asked,) = read_rows(dict(batch)).any(dim=0).nonzero(as_tuple=True)
    entering: list[tuple[Attention, Tensor]] = []

    def note(module: Attention, inputs: tuple[Tensor, ...]) -> None:
        entering.append((module, inputs[0]))

    layers = [with_weights(block.attention) for block in model.gpt.blocks]  # type: ignore[arg-type]
    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    try:
        model.hidden(dict(batch))
    finally:
        for hook in hooks:
            hook.remove()
    return {
        f"block {number}{kind}": float(
            metrics.row_entropy(layer.weights(x)[..., asked + after, :]).mean()
        )
        for number, (layer, x) in enumerate(entering, 1)
        for kind, after in ROWS.items()
    }
