"""Fine-tuning on few labels, by backbone, label set and state of the re-weighting.

LSSAR with a large exponent sometimes fails after pre-training where labels are few. Here every
backbone meets every set of labels, which are seeds of their own, so that the variance of the
result is divided between the two; the second stage of the attention is kept, left out or annealed
in fine-tuning, as a backbone's weights do not depend on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.few_labels.scores import ANNEALED, WITH, WITHOUT
from benchmarks.newton.newton import named_baselines
from benchmarks.newton.quantities import QUANTITIES
from benchmarks.newton.recipe import RecipeStudy
from orbits.runs.deferred import deferred
from orbits.runs.result import Quantity
from orbits.runs.settings import check_at_least, check_not_empty

REWEIGHTING = (WITH, WITHOUT, ANNEALED)


@dataclass(frozen=True)
class FewLabels:
    """Backbones, label sets and the fine-tuning of heads.

    Attributes:
        recipe: The preset of ``newton`` whose world, sizes and pre-training are taken; its
            finished backbones serve here (``--reuse``).
        attention: Attention variants of the backbones.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        seeds: Seeds of the backbones.
        label_sets: Seeds of the labelled sequences and of their order.
        labels: Labelled sequences in each set.
        reweighting: States of re-weighting in fine-tuning, an arm each: ``with`` it
            throughout, ``without`` it (p = 1), or ``annealed``, its exponent rising from 1 to p.
            A model is tested as its fine-tuning left it.
        anneal: Share of the steps over which the exponent rises from 1 to p where it is annealed.
        lrs: Learning rates of fine-tuning.
        steps: Steps of fine-tuning.
        val_steps: Steps between two validations; early stopping takes the best of them.
        n_val: Held-out labelled sequences of a validation; the label budget does not count them.
        baselines: Law-free baselines, names of :data:`worldmodel.controls.baselines.BASELINES`
            or ``all``, fitted to each label set.
    """

    recipe: str = "small"
    attention: tuple[str, ...] = ("lssar", "softmax")
    exponents: tuple[float, ...] = (15.0,)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    label_sets: tuple[int, ...] = (0, 1, 2)
    labels: int = 100
    reweighting: tuple[str, ...] = REWEIGHTING
    anneal: float = 0.5
    lrs: tuple[float, ...] = (0.001, 0.003)
    steps: tuple[int, ...] = (400,)
    val_steps: int = 25
    n_val: int = 256
    baselines: tuple[str, ...] = ("5-NN on the true state", "log-linear filter")

    def __post_init__(self) -> None:
        check_not_empty(self, "attention", "seeds", "label_sets", "reweighting", "lrs", "steps")
        check_at_least(self, {"seeds": 0, "label_sets": 0, "val_steps": 1, "n_val": 1, "steps": 1})
        for arm in self.reweighting:
            if arm not in REWEIGHTING:
                raise ValueError(f"reweighting must be among {', '.join(REWEIGHTING)}, got {arm!r}")
        if not 0 < self.anneal <= 1:
            raise ValueError(f"anneal must be above 0 and at most 1, got {self.anneal:g}")
        for rate in self.lrs:
            if not 0 < rate < 1:
                raise ValueError(f"lrs must be between 0 and 1, got {rate:g}")
        for steps in self.steps:
            if steps % self.val_steps:
                raise ValueError(
                    f"steps must be multiples of val_steps {self.val_steps}, so that the last "
                    f"step is validated too; got {steps}"
                )


class FewLabelsStudy(RecipeStudy):
    """Fine-tuning on few labels."""

    name = "few_labels"
    about = "Does fine-tuning on few labels fail by the backbone, and does re-weighting do it?"
    Settings = FewLabels
    re_weighting = ("exponents", "reweighting", "anneal")
    once = (
        *("attention", "baselines", "exponents", "seeds", "label_sets", "reweighting", "lrs"),
        "steps",
    )
    metrics: ClassVar[Mapping[str, Quantity]] = {
        **QUANTITIES,
        "r2_log_train": Quantity("higher", "", "r2_log of the labelled sequences themselves"),
        "step": Quantity("none", "steps", "at which the model was asked"),
        "entropy": Quantity("none", "nats", "mean entropy of a row of attention weights"),
    }
    cells = deferred("benchmarks.few_labels.grid:cells")
    tables = deferred("benchmarks.few_labels.tables:tables")
    figures = deferred("benchmarks.few_labels.figure:figures")
    sentences = deferred("benchmarks.few_labels.sentences:sentences")

    def resolve(self, settings: FewLabels) -> FewLabels:
        """Return settings with every value once, and every baseline by its name."""
        settings = super().resolve(settings)
        return dataclasses.replace(settings, baselines=named_baselines(settings.baselines))


STUDY = FewLabelsStudy()
