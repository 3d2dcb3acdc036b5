"""By which law world models continue orbits: trained in one world, prompted from each.

The probe ``implied_law`` asks this of a checkpoint. Here models are trained in several worlds, by
the flagship's recipe, so that a run of it lends its world models (``--reuse``), and all are asked
with the prompts of all worlds and with orbits of their own world outside the training box. The
matrix alone does not tell a law from a table of training orbits; every report says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks.newton import newton
from benchmarks.study import check_re_weighted
from orbits.runs.deferred import deferred
from orbits.runs.result import Quantity
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.study import Study

LISTS = ("worlds", "prompts", "attention", "exponents", "seeds", "shifts")
"""Settings in which a value counts once."""


@dataclass(frozen=True)
class Implied:
    """Worlds, models and what they are asked.

    Attributes:
        recipe: The preset of ``newton`` whose protocol, sizes and pre-training are taken.
        worlds: Laws of the worlds in which models are trained.
        prompts: Further laws of prompts, beside those of the worlds. Of the laws that are no power
            of the distance, softened can be told from all powers where orbits are sampled; yukawa,
            whose length is 20 AU, cannot be told from newton.
        attention: Attention variants or linear mixers.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        seeds: Seeds of the trainings.
        n_sequences: Held-out test sequences of each world.
        shifts: Shifts of the exam: orbits of the training's law outside the training box.
    """

    recipe: str = "small"
    worlds: tuple[str, ...] = ("power_1_5", "newton", "power_2_5")
    prompts: tuple[str, ...] = ("softened",)
    attention: tuple[str, ...] = ("softmax",)
    exponents: tuple[float, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2)
    n_sequences: int = 300
    shifts: tuple[str, ...] = ("closer",)

    def __post_init__(self) -> None:
        check_not_empty(self, "worlds", "attention", "seeds")
        check_at_least(self, {"seeds": 0, "n_sequences": 2})


class ImpliedStudy(Study):
    """The matrix of worlds."""

    name = "implied"
    about = "By which law does a world model continue the orbits of other worlds?"
    Settings = Implied
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "exponent_within": Quantity(
            "none", "", "exponent of r along each continued orbit, by its own second differences"
        ),
        "exponent_near": Quantity("none", "", "the same of orbits that are near in the prompt"),
        "exponent_far": Quantity("none", "", "the same of orbits that are far in the prompt"),
        "first_error": Quantity("lower", "AU", "distance from the truth a step after the prompt"),
        "last_error": Quantity("lower", "AU", "distance from the truth at the last step"),
        "own_law_error": Quantity(
            "none", "AU", "distance at the last step from the best orbit of the training's law"
        ),
        "val_nll": Quantity("lower", "nats", "validation loss of a row's two bins together"),
    }
    prepare = staticmethod(deferred("benchmarks.worker:prepare"))
    workers = deferred("benchmarks.worker:workers")
    cells = deferred("benchmarks.implied.grid:cells")
    restore = staticmethod(deferred("benchmarks.newton.restore:restore"))
    tables = deferred("benchmarks.implied.tables:tables")
    figures = deferred("benchmarks.implied.figure:figures")
    sentences = deferred("benchmarks.implied.sentences:sentences")

    def resolve(self, settings: Implied) -> Implied:
        """Return settings with every value once."""
        once: dict[str, Any] = {x: tuple(dict.fromkeys(getattr(settings, x))) for x in LISTS}
        return dataclasses.replace(settings, **once)

    def check(self, settings: Implied) -> None:
        """Refuse a recipe for which this machine has too few devices."""
        newton.STUDY.check(newton.STUDY.settings(settings.recipe))

    def check_changes(self, settings: Implied, changes: Mapping[str, Any]) -> None:
        """Refuse exponents where no variant is re-weighted."""
        if "exponents" in changes and settings.exponents:
            check_re_weighted("--exponents", settings.attention)

    def plan(self, cells: Any, settings: Implied) -> str:
        """Return the cells and what the training of the world models costs."""
        from benchmarks.newton.flops import table

        return f"{super().plan(cells, settings)}\n\n{table(cells)}"


STUDY = ImpliedStudy()
