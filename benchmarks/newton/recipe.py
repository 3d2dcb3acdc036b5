"""The base of studies whose models are trained by the flagship's recipe.

Their settings name a preset of ``newton`` as ``recipe`` and attentions as ``attention``, and their
cells of training are the flagship's, so that finished models serve both (``--reuse``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from benchmarks.newton import newton
from benchmarks.newton.settings import NewtonSettings
from benchmarks.study import TrainingStudy
from orbits.runs.cell import Cell
from orbits.runs.deferred import deferred

costs = deferred("benchmarks.newton.flops:table")


def flagship(settings: Any, **changes: Any) -> NewtonSettings:
    """Return the flagship's settings for the models of a study, which it neither fits nor searches.

    Its engine is one that is always there.
    """
    own = {name: getattr(settings, name) for name in ("attention", "exponents", "seeds")}
    less = {"baselines": (), "engine": ("powerlaw",), "shifts": ()}
    return newton.STUDY.settings(settings.recipe, **{**own, **less, **changes})


def as_flagship(cell: Cell) -> Cell:
    """Return a cell of the flagship at the version, and so at the address, that it has there."""
    needs = {role: as_flagship(needed) for role, needed in cell.needs.items()}
    return dataclasses.replace(cell, version=newton.STUDY.version, needs=needs)


class RecipeStudy(TrainingStudy):
    """A study on the flagship's recipe.

    Attributes:
        untrained: Arms whose cells hold the job of a training that they do not do.
    """

    untrained: ClassVar[tuple[str, ...]] = ()
    restore = staticmethod(deferred("benchmarks.newton.restore:restore"))

    def check(self, settings: Any) -> None:
        """Refuse a recipe for which this machine has too few devices."""
        newton.STUDY.check(newton.STUDY.settings(settings.recipe))

    def plan(self, cells: Sequence[Cell], settings: Any) -> str:
        """Return the cells and the cost of training models."""
        trained = [cell for cell in cells if cell.case.arm not in self.untrained]
        return f"{super().plan(cells, settings)}\n\n{costs(trained)}"
