"""The trained models of a run as exported folders: world models, and heads of the largest budget.

So that the next exam, and every user, can evaluate them without a training, and ``--reuse`` can
start from them (:mod:`benchmarks.newton.restore`).
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.newton import exportable
from benchmarks.newton.worlds import as_number
from benchmarks.training import CHECKPOINT
from orbits.motion import NEWTON
from orbits.runs import artefact, folder
from orbits.runs.cell import CELLS, RECORD
from orbits.runs.cli import next_line
from orbits.runs.result import Result
from worldmodel.models.export import CONFIG, export, files
from worldmodel.models.exported import check_export, class_of
from worldmodel.probes.early import UNASKED

WORLD_MODELS = ("world model", "training")
"""Kinds of results that are trainings of world models, whatever their arm."""
USUAL = "pretraining"
"""The arm that names of models leave out."""
UNTOLD = ("labels", "steps")
"""Settings that names leave out: those of heads, and what follows from a window."""


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
        run: The folder of a finished run of a study of :mod:`benchmarks.newton.exportable`, with
            its cells.
        out: Folder for the models; made if needed.
        attention: Names of attention variants, each with all its exponents; none for all.
        seeds: Seeds of models; none for all.
        limit_mb: Most megabytes, of 10^6 bytes, of all models below ``out``.
        half: Round heads to float16 (:func:`worldmodel.models.export.export`); world models, from
            which later runs start, stay as they are.

    Returns:
        The folders of the models: ``VARIANT-world-model-SEED`` and ``VARIANT-head-SEED``, with the
        law before the seed where it is not that of the run (in ``implied``: Newton's). Where
        trainings of one variant differ by more, their arm and settings stand behind it.

    Raises:
        FileNotFoundError: The folder holds no finished run, or a checkpoint is gone.
        FileExistsError: There is such a model below ``out``.
        ValueError: The run is of another study, has no such model, or its models take too much;
            nothing was written.
    """
    exportable.check(run)
    results, manifest = folder.load(run)
    law = manifest["config"].get("law", NEWTON)
    found = chosen(results)
    if manifest["config"]["study"] != exportable.STUDIES[0]:  # heads on backbones of like names
        found = [result for result in found if result.case.kind in WORLD_MODELS]
    telling = _varying(found)
    models = {_name(x, law, telling): x for x in _picked(found, attention, seeds)}
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


def next_step(model: Path) -> str:
    """Return what can be done with an exported model: some no probe takes."""
    if class_of(model, check_export(model)["settings"]) in UNASKED:
        return f"next: load it as {model / 'README.md'} says"
    return next_line(f"worldmodel probe {shlex.quote(str(model))}")


def chosen(results: Iterable[Result]) -> list[Result]:
    """Return the trainings that are exported: backbones, and heads of the largest label budget."""
    ok = [result for result in results if result.ok]
    heads = [x for x in ok if x.case.kind == "forces" and x.case.arm == "pretrained"]
    budgets = [as_number(result.case.get("labels")) for result in heads]
    backbones = [result for result in ok if result.case.kind in WORLD_MODELS]
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


def _varying(results: Sequence[Result]) -> list[str]:
    """Return the settings in which trainings differ, but for those that names leave out."""
    names = dict.fromkeys(name for result in results for name in result.case.setting)
    return [
        name
        for name in names
        if name not in UNTOLD and len({str(result.case.get(name)) for result in results}) > 1
    ]


def _name(result: Result, law: str, telling: Sequence[str]) -> str:
    case = result.case
    part = "world-model" if case.kind in WORLD_MODELS else "head"
    told = [case.variant]
    if case.kind == "world model" and case.arm != USUAL:
        told.append(case.arm)
    told += [f"{k} {v}" for k in telling if (v := case.setting.get(k)) is not None]
    words = re.sub(r"[^a-zA-Z0-9_.]+", "-", " ".join(told))
    elsewhere = "" if case.law in (law, None) else f"-{case.law}"
    return f"{words}-{part}{elsewhere}-{case.seed}"


def _about(result: Result) -> str:
    case = result.case
    law = "many laws" if case.law is None else f"law `{case.law}`"
    world = f"protocol `{case.protocol}`, {law}, seed {case.seed}"
    if case.kind in WORLD_MODELS:
        arm = "" if case.arm in (USUAL, "world model") else f" ({case.arm})"
        return f"A world model with the attention {case.variant}{arm}, trained on orbits: {world}."
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
