"""The trained models of a run as exported folders: world models, and heads of the largest budget.

So that the next exam, and every user, can evaluate them without a training.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.training import CHECKPOINT
from orbits.runs import folder
from orbits.runs.cell import CELLS
from orbits.runs.result import Result
from worldmodel.models.export import export

STUDY = "newton"
ARMS = ("pretraining", "pretrained")


def export_models(run: Path, out: Path) -> list[Path]:
    """Write the pre-trained models of a run's folder, each to a new folder below ``out``.

    Args:
        run: The folder of a finished run of the flagship, with its cells.
        out: Where the models go; made if needed.

    Returns:
        The folders of the models: ``VARIANT-world-model-SEED`` and ``VARIANT-head-SEED``.

    Raises:
        FileNotFoundError: The folder holds no finished run, or a checkpoint is gone.
        FileExistsError: There is such a model below ``out``.
        ValueError: The run is of another study.
    """
    results, manifest = folder.load(run)
    if (name := manifest["config"].get("study")) != STUDY:
        raise ValueError(f"{run}: models are exported of a run of {STUDY}, got {name!r}")
    models = {_name(result): result for result in chosen(results)}
    for model in models:
        if (out / model).exists():
            raise FileExistsError(f"{out / model} is there; choose another folder")
    sources = {model: run / CELLS / result.cell / CHECKPOINT for model, result in models.items()}
    for source in sources.values():
        if not source.is_file():
            raise FileNotFoundError(f"{source}: no such checkpoint; kept results have none")
    return [
        export(sources[model], out / model, _about(result), _provenance(result))
        for model, result in models.items()
    ]


def chosen(results: Iterable[Result]) -> list[Result]:
    """Return the trainings that are exported: backbones, and heads of the largest label budget."""
    trained = [result for result in results if result.ok and result.case.arm in ARMS]
    heads = [result for result in trained if result.case.kind == "forces"]
    most = max((_budget(result) for result in heads), default=0.0)
    backbones = [result for result in trained if result.case.kind == "world model"]
    return [*backbones, *(result for result in heads if _budget(result) == most)]


def _budget(result: Result) -> float:
    labels = result.case.get("labels")
    return math.inf if labels == "unlimited" else float(labels)


def _name(result: Result) -> str:
    part = "world-model" if result.case.kind == "world model" else "head"
    variant = re.sub(r"[^a-zA-Z0-9_.]+", "-", result.case.variant)
    return f"{variant}-{part}-{result.case.seed}"


def _about(result: Result) -> str:
    case = result.case
    world = f"protocol `{case.protocol}`, law `{case.law}`, seed {case.seed}"
    if case.kind == "world model":
        return f"A world model with the attention {case.variant}, trained on orbits: {world}."
    return (
        f"A force head on a pre-trained backbone with the attention {case.variant}, fine-tuned on "
        f"{case.get('labels')} labelled sequences: {world}."
    )


def _provenance(result: Result) -> dict[str, Any]:
    git = result.manifest.get("git") or {}
    return {"case": result.case.to_json(), "cell": result.cell, "commit": git.get("commit")}
