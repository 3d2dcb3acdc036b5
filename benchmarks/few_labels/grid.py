"""The cells: the flagship's backbones, each fine-tuned on every label set in every arm."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import product
from typing import Any

from benchmarks.few_labels import cells as functions
from benchmarks.few_labels.few_labels import FewLabels
from benchmarks.few_labels.scores import ANNEALED, NO_CHOICE, WITHOUT
from benchmarks.newton import cells as newton_cells
from benchmarks.newton.grid import Grid
from benchmarks.newton.recipe import as_flagship, flagship
from benchmarks.training_options import Job
from orbits.runs.cell import Cell
from orbits.runs.result import Case
from orbits.runs.settings import HEAD_OFFSET
from orbits.runs.study import Study

NAME = "few_labels"


def cells(study: Study, settings: FewLabels) -> list[Cell]:
    """Return every cell of a run, each after those it needs.

    Raises:
        ValueError: The flagship refuses what it is asked for, for example a variant.
    """
    grids = {seed: _grid(settings, seed) for seed in settings.seeds}
    heads = [cell for grid in grids.values() for cell in grid.models() if _is_head(cell)]
    backbones = [_backbone(head) for head in heads]
    controls = _controls(next(iter(grids.values())), settings)
    ceiling = next(cell for cell in controls if cell.function is newton_cells.causal_ceiling)
    tuned = [cell for head in heads for cell in _tuned(head, ceiling, settings)]
    entropies = [_entropy(head, settings) for head in heads]
    return [*backbones, *controls, *entropies, *tuned]


def _grid(settings: FewLabels, seed: int) -> Grid:
    """Return the flagship's grid of one backbone's seed, without exam and searches."""
    labels, baselines = (settings.labels,), settings.baselines
    return Grid(flagship(settings, seeds=(seed,), labels=labels, baselines=baselines))


def _is_head(cell: Cell) -> bool:
    return cell.case.arm == "pretrained"


def _backbone(head: Cell) -> Cell:
    """Return the flagship's cell of a head's backbone."""
    return as_flagship(head.needs["pretrained"])


def _tuned(head: Cell, ceiling: Cell, settings: FewLabels) -> Iterator[Cell]:
    """Yield the fine-tunings of a backbone, from the flagship's job of its head."""
    job: Job = head.arguments["job"]
    arms = settings.reweighting if "p" in (job["model"]["attention_args"] or {}) else (NO_CHOICE,)
    needs = {"pretrained": _backbone(head), "ceiling": ceiling}
    grid = product(settings.lrs, settings.steps, arms, settings.label_sets)
    for lr, steps, arm, label_set in grid:
        case = _case(head.case, "forces", arm=arm, labels=settings.labels, label_set=label_set)
        case = dataclasses.replace(case, setting={**case.setting, "lr": lr, "steps": steps})
        changed: Job = {
            **job,
            "data": {**job["data"], "train_seed": label_set, "n_val": settings.n_val},
            "seed": label_set + HEAD_OFFSET,
            "lr": lr,
            "steps": steps,
            "val_steps": settings.val_steps,
            "keep_best": True,
        }
        if arm == WITHOUT:
            changed["sharpen_after"] = steps  # which no step reaches
        if arm == ANNEALED:
            changed["sharpen_ramp"] = max(1, round(settings.anneal * steps))
        yield Cell(functions.tune, case, {"job": changed}, needs=needs)


def _entropy(head: Cell, settings: FewLabels) -> Cell:
    data = {**head.arguments["job"]["data"], "train_seed": None, "n_val": settings.n_val}
    case = _case(head.case, "attention", arm="pretraining")
    needs = {"pretrained": _backbone(head)}
    return Cell(functions.attention_entropy, case, {"data": data}, needs=needs)


def _controls(grid: Grid, settings: FewLabels) -> list[Cell]:
    """Return the causal ceiling, then the baselines on each label set in units of it."""
    fitted = [cell for cell in grid.controls() if cell.arguments["control"] == "baseline"]
    truth = next(cell for cell in grid.controls() if cell.arguments["control"] == "true_force")
    world: dict[str, Any] = {
        "data": truth.arguments["data"],
        "world": truth.arguments["world"],
        "shifts": {},
    }
    case = dataclasses.replace(_case(truth.case, "ceiling"), variant="causal ceiling")
    ceiling = Cell(newton_cells.causal_ceiling, case, world)
    found = [ceiling]
    for cell, label_set in product(fitted, settings.label_sets):
        given = cell.arguments["arguments"]
        asked = {**given, "labelled": {**given["labelled"], "train_seed": label_set}}
        case = _case(cell.case, "forces", labels=settings.labels, label_set=label_set)
        arguments = {**world, "control": "baseline", "arguments": asked}
        found.append(Cell(newton_cells.examine, case, arguments, needs={"ceiling": ceiling}))
    return found


def _case(case: Case, kind: str, arm: str | None = None, **setting: Any) -> Case:
    """Return a case of this study with the fields of a case of the flagship."""
    arm = case.arm if arm is None else arm
    return dataclasses.replace(case, study=NAME, kind=kind, arm=arm, setting=setting)
