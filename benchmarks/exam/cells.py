"""The cells of the exam of models that are there; those of controls are the flagship's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.exam.exam import ExamSettings, ExamStudy, subjects
from benchmarks.newton import control_names, exam
from benchmarks.newton.cells import ERRORS, Plain, Shifts, World, asked_sequences
from benchmarks.newton.grid import Grid
from benchmarks.newton.settings import NewtonSettings
from orbits import protocols
from orbits.runs.cell import Cell, Outcome
from orbits.runs.result import Case
from symreg.leaderboard.row import EXAM
from worldmodel.models.gpt_world import world_model
from worldmodel.models.predictions import force_columns
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.outside import OutsideModel, load


def cells(study: ExamStudy, settings: ExamSettings) -> Iterator[Cell]:
    """Yield the causal ceiling, the exams of controls and those of the models."""
    models = [load(each.path, settings.law, each.named, each.model) for each in subjects(settings)]
    _check(models)
    grid = Grid(_flagship(settings, models[0]))
    named = [
        grid.control_case(name) for name in (control_names.TRUE_FORCE, control_names.CAUSAL_CEILING)
    ]
    forces = [x for x in grid.controls() if x.case in named or x.case.variant in settings.baselines]
    ceiling, *rest = grid.exams(forces)
    yield ceiling
    yield from rest
    asked = {name: ceiling.arguments[name] for name in ("data", "world", "shifts")}
    for model in models:
        case = Case(
            study=study.name,
            kind=EXAM,
            variant=model.variant,
            arm=model.arm,
            seed=model.seed,
            law=model.law,
            protocol=model.protocol.name,
            setting={"labels": model.labels},
        )
        source = {"model": model.source.model} if isinstance(model, OutsideModel) else {}
        arguments = {**asked, **source}
        yield Cell(examine, case, arguments, needs={"ceiling": ceiling}, inputs=model.inputs)


def examine(
    data: Plain,
    world: World,
    shifts: Shifts,
    ceiling: Path,
    checkpoint: Path,
    model: str | None = None,
    **further: Path,
) -> Outcome:
    """Examine a model; see :func:`benchmarks.newton.cells.examine`."""
    asked = world_model(load(checkpoint, None, None, model).model)
    columns = {
        name: force_columns(asked, orbits.test_dataloader())
        for name, orbits in asked_sequences(data, world, shifts).items()
    }
    subjects = {name: shift.get("exponent") for name, shift in shifts.items()}
    return Outcome(exam.measure(columns, exam.load(ceiling / ERRORS), subjects))


def _check(models: list[Checkpoint]) -> None:
    first, names = models[0], set[tuple[str, int]]()
    for model in models:
        if not model.can("force"):
            raise ValueError(f"{model.path}: {model.own_name} has no force; take a force head")
        if (why := model.leaks) is not None:
            raise ValueError(f"{model.path}: {why}")
        if model.protocol != first.protocol:
            raise ValueError(
                f"{first.path} and {model.path} are of different worlds, which never share a "
                "table; examine them apart"
            )
        if (name := (model.variant, model.seed)) in names:
            raise ValueError(
                f"{model.path}: a second model {name[0]!r} of seed {name[1]}; name it by what "
                f"differs: LABEL:SEED={_typed(model)}"
            )
        names.add(name)


def _typed(model: Checkpoint) -> str:
    """Return a model as its user names it."""
    if isinstance(model, OutsideModel):
        return f"{model.path}:{model.source.model}"
    return str(model.path)


def _flagship(settings: ExamSettings, model: Checkpoint) -> NewtonSettings:
    """Return settings of the flagship in a model's world, of which the controls are taken."""
    world = model.protocol
    plain: Mapping[str, Any] = protocols.get(world.name).config()
    changed = {
        name: value
        for name in protocols.OVERRIDES
        if name != "law" and (value := getattr(world, name)) != plain.get(name)
    }
    return dataclasses.replace(
        NewtonSettings(),
        protocol=world.name,
        protocol_args={world.name: changed},
        law=world.law,
        labels=(settings.labels,),
        baselines=settings.baselines,
        n_test=settings.n_test,
        shifts=settings.shifts,
        shift_file=settings.shift_file,
        engine=("powerlaw",),
    )
