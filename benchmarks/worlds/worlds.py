"""In-context law inference: one world model on many laws, asked which law its orbits go on by.

Every training sequence obeys a power of the distance of its own, out of a range of exponents with
intervals held out; nobody tells the model which. It is then prompted with orbits of test worlds,
and what is measured is the exponent that its own continuations obey (:mod:`orbits.implied`): S is
how much of a change of the prompt's law they follow, 0 for a model that imposes one law on all and
1 for one that infers it. The time step does not tell the law (protocol ``neutral_step``), which
half of it checks in every report; ``--protocol identifiable`` has one that tells it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from benchmarks.study import TrainingStudy
from benchmarks.training_options import Training
from benchmarks.worlds.names import NEUTRAL, TELLING
from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred
from orbits.runs.result import Quantity
from orbits.runs.settings import check_at_least, check_not_empty
from worldmodel.probes.quantities import QUANTITIES as PROBES


@dataclass(frozen=True)
class Worlds:
    """Laws of the training and of the test, models and sizes. Exponents are those of the distance.

    Attributes:
        protocol: ``neutral_step``, or ``identifiable``, whose time step tells the law.
        attention: Attention variants or linear mixers, each trained on the mixture. Controls that
            are trained have the first.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        seeds: Seeds of the models on the mixture. Controls that are trained have the first.
        low: Least exponent of the training.
        high: Largest exponent of the training.
        held_out: Ends of the intervals in which no law of the training lies, ascending.
        n_laws: Laws of the training, evenly over what is not held out.
        sequences: Different sequences of the training; 0 for new ones at every step.
        single: Exponent of the one world that a control is trained in.
        control_trainings: Trainings of this control and of the one that is told the law, with the
            first seeds.
        tested: Exponents of the test worlds, three or more; two or more not held out.
        families: Laws of other families that are asked for, too, names of
            :data:`benchmarks.worlds.families.FAMILIES`; further models are trained on them.
        n_family_laws: Laws of the training in each family, beside ``n_laws`` powers.
        exchanged: Exponents of laws between which residuals are exchanged: of the systems that
            are shown, then of the donors; none for no exchange.
        n_exchanged: Systems of which those that have such pairs are taken.
        prompts: Time steps of a prompt.
        n_test: Test sequences of each world.
        n_fitted: Test sequences of each world to which the ceiling fits orbits, the first ones.
        n_fits: Laws under which the ceiling fits orbits, evenly from ``low`` to ``high``.
        n_read: Sequences of the mixture, none of which was trained on, that the read-out of the
            law is fitted to.
        n_table: Orbits of the mixture in the table of training orbits.
        n_bins: Position bins per coordinate.
        n_layer: Blocks of the backbone.
        n_head: Heads per block.
        head_dim: Channels per head.
        batch_size: Sequences per step and device.
        steps: Steps of training.
        lr: Largest learning rate.
        training: How and on what models are trained.
    """

    protocol: str = NEUTRAL
    attention: tuple[str, ...] = ("softmax", "lssar", "lazy")
    exponents: tuple[float, ...] = (15.0,)
    seeds: tuple[int, ...] = (0, 1, 2)
    low: float = -2.75
    high: float = 0.25
    held_out: tuple[float, ...] = (-2.2, -1.8, -1.2, -0.8)
    n_laws: int = 64
    sequences: int = 0
    single: float = -2.0
    control_trainings: int = 1
    tested: tuple[float, ...] = (-2.5, -2.0, -1.5, -1.0, -0.5)
    families: tuple[str, ...] = ()
    n_family_laws: int = 16
    exchanged: tuple[float, ...] = ()
    n_exchanged: int = 400
    prompts: tuple[int, ...] = (4, 8, 12)
    n_test: int = 300
    n_fitted: int = 100
    n_fits: int = 14
    n_read: int = 4000
    n_table: int = 20_000
    n_bins: int = 512
    n_layer: int = 2
    n_head: int = 2
    head_dim: int = 32
    batch_size: int = 64
    steps: int = 2200
    lr: float = 6e-3
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, (NEUTRAL, TELLING))
        check_not_empty(self, "attention", "seeds", "tested", "prompts")
        least = {"n_test": 2, "n_fitted": 2, "n_fits": 5, "n_read": 20, "n_table": 1}
        least |= {"n_laws": 1, "n_family_laws": 1, "n_exchanged": 1}
        least |= {"control_trainings": 1}
        least |= dict.fromkeys(("n_layer", "n_head", "head_dim", "batch_size"), 1)
        check_at_least(
            self, {**least, "seeds": 0, "sequences": 0, "steps": 1, "prompts": 2, "lr": 1e-9}
        )
        if max(self.prompts) > LONGEST:
            raise ValueError(
                f"prompts must be of at most {LONGEST} steps, since as many are continued as "
                f"the longest has; got {max(self.prompts)}"
            )
        if self.n_fitted > self.n_test:
            raise ValueError(f"n_fitted must be at most n_test {self.n_test}, got {self.n_fitted}")


EXCHANGED = ("share_path", "agreement_path", "exponent_within", "share_exponent", "share_law")
LONGEST = 12
"""Steps of the longest prompt: half of a sequence."""


class WorldsStudy(TrainingStudy):
    """In-context law inference."""

    name = "worlds"
    about = "Does a world model infer the law of a world from the orbit that it sees?"
    Settings = Worlds
    once = ("attention", "exponents", "seeds", "tested", "families", "exchanged", "prompts")
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "val_nll": Quantity("lower", "nats", "of the next point, validation"),
        "S": Quantity(
            "none",
            "",
            "slope of the exponent of continuations over that of the test world, as a share of "
            "that of true orbits in bins: 0 imposes one law, 1 infers it",
        ),
        "exponent": Quantity("none", "", "of the distance, obeyed by continuations; by world"),
        "bias": Quantity(
            "none",
            "",
            "exponent at a law held out, less the line through those of the training",
        ),
        "error": Quantity(
            "lower", "AU", "median distance of planet - star from the truth after twelve steps"
        ),
        "nll": Quantity("lower", "nats", "of a next point in the four steps after a prompt"),
        "log_score": Quantity(
            "higher", "nats", "logarithm of the density that the law read-out has at the truth"
        ),
        "explained": Quantity(
            "higher", "", "R² of the law read-out's exponent, where it was not fitted; by layer"
        ),
        "crps": Quantity("lower", "", "continuous ranked probability score of the law read-out"),
        **{name: PROBES[name] for name in (*EXCHANGED, "missed")},
        "coverage": Quantity(
            "none", "share", "true exponents within the central 90% of the law read-out", (0, 1)
        ),
    }
    restore = staticmethod(deferred("benchmarks.worlds.restore:restore"))
    cells = deferred("benchmarks.worlds.grid:cells")
    tables = deferred("benchmarks.worlds.tables:tables")
    figures = deferred("benchmarks.worlds.figure:figures")
    sentences = deferred("benchmarks.worlds.sentences:sentences")

    def resolve(self, settings: Worlds) -> Worlds:
        """Return settings with every value once, exponents ascending."""
        settings = super().resolve(settings)
        tested, prompts = sorted(settings.tested), sorted(settings.prompts)
        return dataclasses.replace(settings, tested=tuple(tested), prompts=tuple(prompts))


STUDY = WorldsStudy()
