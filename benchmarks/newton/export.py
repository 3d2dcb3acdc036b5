"""The trained models of a run as exported folders: world models, and heads of the largest budget.

So that the next exam, and every user, can evaluate them without a training, and ``--reuse`` can
start from them (:mod:`benchmarks.newton.restore`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.newton import exportable
from benchmarks.newton.worlds import as_number
from benchmarks.training import CHECKPOINT
from orbits.motion import NEWTON
from orbits.runs import artefact, folder
from orbits.runs.cell import CELLS, RECORD
from orbits.runs.result import Result
from worldmodel.models.export import CONFIG, export, files

ARMS = ("pretraining", "pretrained")


def export_models(
    run: Path,
    out: Path,
    attention: Sequence[str] = (),
    seeds: Sequence[int] = (),
    limit_mb: float = math.inf,
    half: bool = False,
) -> list[Path]:
    """Write the pre-trained models of a run's folder, each to a new folder below ``out``.

    Args:
        run: The folder of a finished run of the flagship or of ``implied``, with its cells.
        out: Folder for the models; made if needed.
        attention: Names of attention variants, each with all its exponents; none for all.
        seeds: Seeds of models; none for all.
        limit_mb: Most megabytes, of 10^6 bytes, of all models below ``out``.
        half: Round heads to float16 (:func:`worldmodel.models.export.export`); world models, from
            which later runs start, stay as they are.

    Returns:
        The folders of the models: ``VARIANT-world-model-SEED`` and ``VARIANT-head-SEED``, with the
        law before the seed where it is not that of the run (in ``implied``: Newton's).

    Raises:
        FileNotFoundError: The folder holds no finished run, or a checkpoint is gone.
        FileExistsError: There is such a model below ``out``.
        ValueError: The run is of another study, has no such model, or its models take too much;
            nothing was written.
    """
    exportable.check(run)
    results, manifest = folder.load(run)
    law = manifest["config"].get("law", NEWTON)
    models = {_name(x, law): x for x in _picked(chosen(results), attention, seeds)}
    for model in models:
        if (out / model).exists():
            raise FileExistsError(f"{out / model} is there; choose another folder")
    sources = {model: run / CELLS / result.cell / CHECKPOINT for model, result in models.items()}
    for source in sources.values():
        if not source.is_file():
            raise FileNotFoundError(f"{source}: no such checkpoint; kept results have none")
    words = {model: (_about(x), _provenance(x, sources[model])) for model, x in models.items()}
    rounded = {model: half and x.case.kind == "forces" for model, x in models.items()}
    # Twice read, so that no more than one is held in memory.
    new = sum(_size(files(sources[x], x, *words[x], rounded[x])) for x in models)
    _check_limit(len(models), new, out, limit_mb)
    return [export(sources[x], out / x, *words[x], rounded[x]) for x in models]


def chosen(results: Iterable[Result]) -> list[Result]:
    """Return the trainings that are exported: backbones, and heads of the largest label budget."""
    trained = [result for result in results if result.ok and result.case.arm in ARMS]
    heads = [result for result in trained if result.case.kind == "forces"]
    budgets = [as_number(result.case.get("labels")) for result in heads]
    backbones = [result for result in trained if result.case.kind == "world model"]
    largest = max(budgets, default=0.0)
    kept = (head for head, size in zip(heads, budgets, strict=True) if size == largest)
    return [*backbones, *kept]


def _picked(
    results: Sequence[Result], attention: Sequence[str], seeds: Sequence[int]
) -> list[Result]:
    """Return the results of some attentions and seeds."""
    picked = list(results)
    for flag, wanted, value in (("--attention", attention, _attention), ("--seeds", seeds, _seed)):
        there = dict.fromkeys(value(result) for result in results)
        for each in wanted:
            if each not in there:
                known = ", ".join(map(str, there)) or "none, for want of a trained model"
                raise ValueError(f"{flag} {each}: no such model; choose from {known}")
        picked = [result for result in picked if not wanted or value(result) in wanted]
    return picked


def _attention(result: Result) -> str:
    """Return the name of a variant without its arguments, ``lssar`` of ``lssar p=15``."""
    return re.split("[ ,]", result.case.variant)[0]


def _seed(result: Result) -> int | None:
    return result.case.seed


def _check_limit(count: int, new: int, out: Path, limit_mb: float) -> None:
    """Refuse models that take too much together with those that are there."""
    if not limit_mb > 0:
        raise ValueError(f"--limit-mb must be more than 0, got {limit_mb:g}")
    models = [config.parent for config in out.glob(f"*/{CONFIG}")]
    there = sum(file.stat().st_size for model in models for file in model.iterdir())
    if (new + there) / 1e6 > limit_mb:
        beside = f" beside {there / 1e6:.1f} MB in {out}" if there else ""
        raise ValueError(
            f"{count} models take {new / 1e6:.1f} MB{beside}, more than --limit-mb {limit_mb:g}; "
            "choose fewer by --attention and --seeds, or raise the limit"
        )


def _size(contents: dict[str, bytes]) -> int:
    return sum(map(len, contents.values()))


def _name(result: Result, law: str) -> str:
    part = "world-model" if result.case.kind == "world model" else "head"
    variant = re.sub(r"[^a-zA-Z0-9_.]+", "-", result.case.variant)
    elsewhere = "" if result.case.law == law else f"-{result.case.law}"
    return f"{variant}-{part}{elsewhere}-{result.case.seed}"


def _about(result: Result) -> str:
    case = result.case
    world = f"protocol `{case.protocol}`, law `{case.law}`, seed {case.seed}"
    if case.kind == "world model":
        return f"A world model with the attention {case.variant}, trained on orbits: {world}."
    return (
        f"A force head on a pre-trained backbone with the attention {case.variant}, fine-tuned on "
        f"{case.get('labels')} labelled sequences: {world}."
    )


def _provenance(result: Result, checkpoint: Path) -> dict[str, Any]:
    """Return the case, cell, checkpoint and commit of a model."""
    git = result.manifest.get("git") or {}
    origins = artefact.load_record(checkpoint.parent / RECORD).get("origins", {})
    return {
        "case": result.case.to_json(),
        "cell": result.cell,
        # That of the training, also where it was restored from an exported model.
        "checkpoint": origins.get(CHECKPOINT) or artefact.sha256(checkpoint),
        "commit": git.get("commit"),
    }
