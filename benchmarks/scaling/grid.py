"""The cells: the flagship's world models at each point, each measured, and their heads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import product
from typing import Any

from benchmarks.newton import flops
from benchmarks.newton import worlds as newton_worlds
from benchmarks.newton.grid import Grid
from benchmarks.newton.recipe import as_flagship, flagship
from benchmarks.scaling import cells as functions
from benchmarks.scaling.axes import Place, shape
from benchmarks.scaling.costs import counted
from benchmarks.scaling.curves import CURVE, HEAD, PLAN
from benchmarks.scaling.scaling import Scaling
from orbits.runs.cell import Cell
from orbits.runs.result import Case
from orbits.runs.study import Study

NAME = "scaling"


def cells(study: Study, settings: Scaling) -> list[Cell]:
    """Return every cell of a run, each after those it needs."""
    found: list[Cell] = []
    for steps, heads, sequences in product(settings.steps, settings.heads, settings.sequences):
        grid = _grid(settings, steps, heads, sequences)
        point = {"steps": steps, "heads": heads, "sequences": sequences}
        if not found:
            functions.check(newton_worlds.world(grid.settings))
            found.append(_controls(grid, settings))
        found += _point(grid, settings, point)
    found += _plans(settings)
    return list({cell.key: cell for cell in found}.values())  # a ceiling is that of all points


def _grid(settings: Scaling, steps: int, heads: Place, sequences: int) -> Grid:
    """Return the flagship's grid of one point."""
    n_head, head_dim = shape(heads, flagship(settings).head_dim)
    return Grid(
        flagship(
            settings,
            pretrain_steps=steps,
            n_head=n_head,
            head_dim=head_dim,
            n_pretrain=sequences or None,
            labels=settings.labels or (100,),  # without heads, none is asked for
            shifts=("all",) if settings.labels else (),
        )
    )


def _point(grid: Grid, settings: Scaling, point: dict[str, Place]) -> Iterator[Cell]:
    """Yield the world models of a point, their measurements, and their heads' exams."""
    asked = _asked(grid, settings)
    for (_, variant, seed), cell in grid.world_models.items():
        model = as_flagship(cell)
        yield model
        case = _case(grid, CURVE, variant.label, "pretraining", seed, point)
        arguments = {**asked, "flops": flops.of_cell(cell).flops, **grid.how()}
        yield Cell(functions.measure, case, arguments, needs={"pretrained": model})
    if not settings.labels:
        return
    heads = [cell for cell in grid.models() if cell.case.arm == "pretrained"]
    for name, head in {cell.case.variant: cell for cell in heads}.items():
        yield counted(head, _case(grid, HEAD, name, "pretrained", None, point))
    ceiling, *exams = map(as_flagship, grid.exams(heads))
    yield from (*map(as_flagship, heads), ceiling)
    for cell in exams:
        # The flagship's cases do not say of which point they are.
        case = dataclasses.replace(cell.case, study=NAME, setting={**cell.case.setting, **point})
        yield dataclasses.replace(cell, case=case)


def _controls(grid: Grid, settings: Scaling) -> Cell:
    return Cell(
        functions.controls,
        _case(grid, CURVE, "controls", "control", None, {}),
        _asked(grid, settings),
        version=2,  # steps after pieces of orbits came in
    )


def _plans(settings: Scaling) -> Iterator[Cell]:
    """Yield the cells that count the cost of the preset that is extrapolated to."""
    grid = Grid(flagship(dataclasses.replace(settings, recipe=settings.predict), seeds=(0,)))
    for (_, variant, _), cell in grid.world_models.items():
        case = Case(NAME, PLAN, variant.label, settings.predict, law=grid.settings.law)
        yield counted(cell, case)


def _asked(grid: Grid, settings: Scaling) -> dict[str, Any]:
    """Return the question that every measurement answers, as plain data."""
    world = newton_worlds.world(grid.settings)
    question = {
        "protocol": grid.settings.protocol,
        "protocol_args": newton_worlds.world_arguments(grid.settings),
        "seed": 0,
        "n_test": settings.n_test,
    }
    return {"question": question, "world": world.config()}


def _case(
    grid: Grid, kind: str, variant: str, arm: str, seed: int | None, setting: dict[str, Place]
) -> Case:
    settings = grid.settings
    return Case(NAME, kind, variant, arm, seed, settings.law, settings.protocol, setting)
