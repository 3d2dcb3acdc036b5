"""The cells: trainings on the mixture at each point, their cost and answers, references once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import product
from typing import Any

from benchmarks.scaling.axes import shape
from benchmarks.scaling.costs import counted
from benchmarks.worlds import grid as worlds_grid
from benchmarks.worlds import worlds
from benchmarks.worlds.names import MIXTURE, PLACES, STEPS, UNTRAINED
from benchmarks.worlds.worlds import Worlds
from benchmarks.worlds_scaling.points import AXES, COST
from benchmarks.worlds_scaling.worlds_scaling import WorldsScaling
from orbits.runs.cell import Cell
from orbits.runs.study import Study

NAME = "worlds_scaling"
ASKED, TRAINED, TRUTHS = "worlds", "world model", "truth"
"""Kinds of the cells of ``worlds`` that this study has."""
REFERENCES = (UNTRAINED, "control", "ceiling")
"""Arms that are asked once, of the recipe's own size; their cells are those of ``worlds``."""


def cells(study: Study, settings: WorldsScaling) -> list[Cell]:
    """Return every cell of a run, each after those it needs."""
    recipe = _recipe(settings)
    found = [cell for cell in worlds_grid.cells(study, recipe) if _is_reference(cell)]
    for values in product(*(getattr(settings, axis) for axis in AXES)):
        found += _point(study, recipe, dict(zip(AXES, values, strict=True)))
    return found


def _recipe(settings: WorldsScaling) -> Worlds:
    names = ("protocol", "attention", "exponents", "seeds")
    own = {name: getattr(settings, name) for name in names}
    return worlds.STUDY.settings(settings.recipe, **own, families=(), exchanged=())


def _point(study: Study, recipe: Worlds, point: dict[str, Any]) -> Iterator[Cell]:
    """Yield the trainings of a point, which have the addresses of ``worlds``, and their answers."""
    n_head, head_dim = shape(point["heads"], recipe.head_dim)
    sized = dataclasses.replace(
        recipe,
        steps=point["steps"],
        n_head=n_head,
        head_dim=head_dim,
        sequences=point["sequences"],
        n_laws=point["laws"],
    )
    counted_of: set[str] = set()
    for cell in worlds_grid.cells(study, sized):
        if cell.case.arm != MIXTURE or cell.case.kind == STEPS:
            continue
        if cell.case.kind == TRAINED and cell.case.variant not in counted_of:
            counted_of.add(cell.case.variant)
            yield counted(
                cell,
                dataclasses.replace(cell.case, study=NAME, kind=COST, seed=None, setting=point),
            )
        if cell.case.kind == ASKED:
            # The cases of worlds do not say of which point they are.
            case = dataclasses.replace(cell.case, study=NAME, setting=point)
            cell = dataclasses.replace(cell, case=case)
        yield cell


def _is_reference(cell: Cell) -> bool:
    case = cell.case
    if case.kind == STEPS:
        return False
    return case.kind == TRUTHS or (case.arm in REFERENCES and case.variant != PLACES)
