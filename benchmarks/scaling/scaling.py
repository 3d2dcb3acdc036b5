"""World models of more steps, width and data, measured without a label.

Each point is a training of its own with a schedule of its own length, by the flagship's recipe.
What is measured is the share of the kick that a model misses one step ahead, the power of the
distance by which it continues orbits, inside the training box and outside, and, with labels, the
exam of a force head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.newton.quantities import QUANTITIES
from benchmarks.newton.recipe import RecipeStudy
from orbits.runs.deferred import deferred
from orbits.runs.result import Quantity
from orbits.runs.settings import check_at_least, check_not_empty


@dataclass(frozen=True)
class Scaling:
    """Points of the curves.

    Attributes:
        recipe: The preset of ``newton`` whose world, depth, batch and learning rates are taken.
        attention: Attention variants or linear mixers.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        steps: Steps of pre-training, a training each.
        heads: Heads per block, each as wide as the recipe's: the width. 0.5 is one head of half as
            many channels.
        sequences: Different sequences of pre-training; 0 for new ones at every step.
        seeds: Seeds of the trainings.
        labels: Label budget of force heads, which are examined; none for none.
        n_test: Held-out test sequences.
        predict: Preset of ``newton`` for whose world model an error is extrapolated.
    """

    recipe: str = "small"
    attention: tuple[str, ...] = ("softmax",)
    exponents: tuple[float, ...] = ()
    steps: tuple[int, ...] = (50, 110, 240, 510, 1100, 2400)
    heads: tuple[int | float, ...] = (1, 2, 4)
    sequences: tuple[int, ...] = (0,)
    seeds: tuple[int, ...] = (0, 1, 2)
    labels: tuple[int, ...] = ()
    n_test: int = 600
    predict: str = "gpu"

    def __post_init__(self) -> None:
        check_not_empty(self, "attention", "steps", "heads", "sequences", "seeds")
        least = {"steps": 2, "sequences": 0, "seeds": 0, "labels": 1, "n_test": 20}
        check_at_least(self, least)
        if len(set(self.labels)) > 1:
            raise ValueError(
                f"labels must be one budget, since a training has one exam here; got "
                f"{', '.join(map(str, self.labels))}"
            )


class ScalingStudy(RecipeStudy):
    """Curves against steps, width, data and compute."""

    name = "scaling"
    about = "What do more steps, width and data buy a world model?"
    Settings = Scaling
    once = ("attention", "exponents", "steps", "heads", "sequences", "seeds", "labels")
    metrics: ClassVar[Mapping[str, Quantity]] = {
        **QUANTITIES,
        "missed": Quantity(
            "lower", "", "rms error of the kick of one step over the rms kick, both bodies"
        ),
        "nll": Quantity("lower", "nats", "of a row's two bins together, held-out sequences"),
        "exponent_within": Quantity("none", "", "exponent of r along continued orbits"),
        "exponent_closer": Quantity(
            "none", "", "the same of orbits closer than any of the training"
        ),
        "flops": Quantity("none", "FLOPs", "of the training, by formula"),
        "parameters": Quantity("none", "", "weights of the model"),
    }
    cells = deferred("benchmarks.scaling.grid:cells")
    tables = deferred("benchmarks.scaling.tables:tables")
    figures = deferred("benchmarks.scaling.figure:figures")
    sentences = deferred("benchmarks.scaling.sentences:sentences")
    all_at_once = deferred("benchmarks.scaling.sentences:all_at_once")


STUDY = ScalingStudy()
