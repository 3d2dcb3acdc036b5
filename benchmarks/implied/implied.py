"""Laws by which world models continue orbits: trained in one world, prompted from each.

The probe ``implied_law`` asks this of a checkpoint. Here models are trained in several worlds, by
the flagship's recipe, so that a run of it lends its world models (``--reuse``), and all are asked
with the prompts of all worlds and with orbits of their own world outside the training box. The
matrix alone does not tell a law from a table of training orbits; every report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.newton.recipe import RecipeStudy
from orbits import laws
from orbits.runs.deferred import deferred
from orbits.runs.result import Quantity
from orbits.runs.settings import check_at_least, check_not_empty


@dataclass(frozen=True)
class Implied:
    """Worlds, models and the questions to them.

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


class ImpliedStudy(RecipeStudy):
    """The matrix of worlds."""

    name = "implied"
    about = "By which law does a world model continue the orbits of other worlds?"
    Settings = Implied
    once = ("worlds", "prompts", "attention", "exponents", "seeds", "shifts")
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
    cells = deferred("benchmarks.implied.grid:cells")
    tables = deferred("benchmarks.implied.tables:tables")
    figures = deferred("benchmarks.implied.figure:figures")
    sentences = deferred("benchmarks.implied.sentences:sentences")
    all_at_once = deferred("benchmarks.implied.pairs:all_at_once")

    def check(self, settings: Implied) -> None:
        """Refuse unknown laws, before torch is imported, and missing devices."""
        for law in (*settings.worlds, *settings.prompts):
            laws.get(law)
        super().check(settings)


STUDY = ImpliedStudy()
