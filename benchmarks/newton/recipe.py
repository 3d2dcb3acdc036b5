"""The base of studies whose models are trained by the flagship's recipe.

Their settings name a preset of ``newton`` as ``recipe`` and attentions as ``attention``, and their
cells of training are the flagship's, so that finished models serve both (``--reuse``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from benchmarks.newton import newton
from benchmarks.study import refuse_unused
from orbits.runs.cell import Cell
from orbits.runs.deferred import deferred
from orbits.runs.study import Study

costs = deferred("benchmarks.newton.flops:table")


class RecipeStudy(Study):
    """A study on the flagship's recipe.

    Attributes:
        re_weighting: Settings of re-weighted variants, refused where no variant is one.
        untrained: Arms whose cells hold the job of a training that they do not do.
    """

    re_weighting: ClassVar[tuple[str, ...]] = ("exponents",)
    untrained: ClassVar[tuple[str, ...]] = ()
    prepare = staticmethod(deferred("benchmarks.worker:prepare"))
    workers = deferred("benchmarks.worker:workers")
    restore = staticmethod(deferred("benchmarks.newton.restore:restore"))

    def check(self, settings: Any) -> None:
        """Refuse a recipe for which this machine has too few devices."""
        newton.STUDY.check(newton.STUDY.settings(settings.recipe))

    def check_changes(self, settings: Any, changes: Mapping[str, Any]) -> None:
        """Refuse settings of the re-weighting where no variant is re-weighted."""
        refuse_unused(changes, settings.attention, self.re_weighting)

    def plan(self, cells: Sequence[Cell], settings: Any) -> str:
        """Return the cells and what the training of models costs."""
        trained = [cell for cell in cells if cell.case.arm not in self.untrained]
        return f"{super().plan(cells, settings)}\n\n{costs(trained)}"
