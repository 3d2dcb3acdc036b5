"""In-context law inference of world models of more steps, width, sequences and laws.

Each point is a training of its own, with a schedule of its own length, on the mixture of laws of
:mod:`benchmarks.worlds`, and is asked what the models there are asked. The score is S: how much of
a change of the prompt's law continuations follow. Since S is a share around zero where nothing is
inferred, it has no power law; what is fitted is its gain for ten times as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks.study import TrainingStudy
from benchmarks.worlds import worlds
from benchmarks.worlds.names import NEUTRAL, TELLING
from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred
from orbits.runs.result import Quantity
from orbits.runs.settings import check_at_least, check_not_empty


@dataclass(frozen=True)
class WorldsScaling:
    """Points of the curves.

    Attributes:
        recipe: The preset of ``worlds`` whose laws, questions, depth, batch and learning rate are
            taken.
        protocol: How worlds are made and observed, as in ``worlds``: with a time step that tells
            no law, or with one that follows the period.
        attention: Attention variants or linear mixers.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        steps: Steps of training, a training each.
        heads: Heads per block, each as wide as the recipe's: the width. 0.5 is one head of half as
            many channels.
        sequences: Different sequences of training; 0 for new ones at every step.
        laws: Laws of the mixture, evenly over what is not held out.
        seeds: Seeds of the trainings.
    """

    recipe: str = "small"
    protocol: str = NEUTRAL
    attention: tuple[str, ...] = ("softmax",)
    exponents: tuple[float, ...] = ()
    steps: tuple[int, ...] = (140, 280, 550, 1100, 2200, 4400)
    heads: tuple[int | float, ...] = (2,)
    sequences: tuple[int, ...] = (0,)
    laws: tuple[int, ...] = (64,)
    seeds: tuple[int, ...] = (0, 1, 2)

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, (NEUTRAL, TELLING))
        check_not_empty(self, "attention", "steps", "heads", "sequences", "laws", "seeds")
        check_at_least(self, {"steps": 2, "sequences": 0, "laws": 1, "seeds": 0})


class WorldsScalingStudy(TrainingStudy):
    """Curves of law inference."""

    name = "worlds_scaling"
    about = "What do more steps, width, data and laws buy in-context law inference?"
    Settings = WorldsScaling
    once = ("attention", "exponents", "steps", "heads", "sequences", "laws", "seeds")
    metrics: ClassVar[Mapping[str, Quantity]] = {
        **worlds.STUDY.metrics,
        "flops": Quantity("none", "FLOPs", "of a training, by formula"),
        "parameters": Quantity("none", "", "weights of the model"),
    }
    restore = staticmethod(worlds.STUDY.restore)  # its trainings are those of worlds
    cells = deferred("benchmarks.worlds_scaling.grid:cells")
    tables = deferred("benchmarks.worlds_scaling.tables:tables")
    figures = deferred("benchmarks.worlds_scaling.figure:figures")
    sentences = deferred("benchmarks.worlds_scaling.sentences:sentences")

    def check(self, settings: Any) -> None:
        """Refuse a recipe for which this machine has too few devices."""
        worlds.STUDY.check(worlds.STUDY.settings(settings.recipe))


STUDY = WorldsScalingStudy()
