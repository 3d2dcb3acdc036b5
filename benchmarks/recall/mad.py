"""MAD: six small problems, each of which tests one skill of a mixer.

Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures" (arXiv:2403.17844); ZeroS
(2025), Tables 1, 6 and 8. Accuracy is the *macro* average over classes. Published scores are means
over batches of 128 rows of each batch's macro accuracy, which is a metric of its own here, beside
that of all rows at once and the plain share of right answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from benchmarks.published.compare import Ours
from benchmarks.rates import best
from benchmarks.recall import mad_settings
from benchmarks.recall.base import METRICS, Headline, RecallStudy, share
from benchmarks.recall.blind import commonest
from benchmarks.recall.sweep import Exercise, Sweep
from orbits.runs.choices import check_choice
from orbits.runs.result import Quantity, Result
from orbits.runs.settings import check_not_empty
from orbits.runs.table import Table

NAMES = tuple(sorted(mad_settings.BASELINES))
BASELINE = "baseline"


@dataclass(frozen=True)
class Skills(Sweep):
    """Settings of models and of their problems.

    Attributes:
        head_dim: Channels per head.
        problems: Names of problems.
        harder: Train on every axis of difficulty too, not on the baselines alone.
        train_share: Share of the published number of training rows.
    """

    head_dim: int = 64
    problems: tuple[str, ...] = NAMES
    harder: bool = False
    train_share: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_empty(self, "problems")
        for name in self.problems:
            check_choice("problem", name, NAMES)
        if not 0 < self.train_share <= 1:
            raise ValueError(f"train_share must be in (0, 1], got {self.train_share}")

    def exercises(self) -> Iterator[Exercise]:
        """Yield each problem at its baseline and, with ``harder``, at its harder settings."""
        for setting in mad_settings.settings():
            if setting.skill in self.problems and (self.harder or setting.changed == BASELINE):
                rows = max(1, round(self.train_share * setting.n_train))
                shown = {"changed": setting.changed, "to": setting.value}
                yield Exercise(
                    setting.problem,
                    self.head_dim,
                    rows,
                    tests={setting.skill: setting.problem},
                    setting={"problem": setting.skill, **shown},
                )


class MADStudy(RecallStudy):
    """Mechanistic architecture design."""

    name = "mad"
    version = 3
    about = "Which of six skills (recall, copying, compression, ...) does a mixer have?"
    Settings = Skills
    metrics: ClassVar = {
        **{
            f"acc@{name}": Quantity("higher", "%", f"macro accuracy of {name}", (0, 100))
            for name in NAMES
        },
        "batch_macro_accuracy": Quantity(
            "higher", "%", "mean over batches of 128 rows of each batch's macro accuracy", (0, 100)
        ),
        "micro": share("right answers"),
        **METRICS,
    }
    published: ClassVar = ("mad",)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return macro accuracies of the baselines, and of the harder settings."""
        metrics = [f"acc@{name}" for name in NAMES]
        at_best = "at the rate and decay with the best validation accuracy, macro accuracy in %"
        baselines, harder = _baselines(best(results)), _harder(best(results))
        by_problem = ("problem", "changed", "to", "variant")
        scores = ("batch_macro_accuracy", "micro")
        published = [x for x in best(results) if scores[0] in x.metrics]
        return [
            self.seed_table(f"Baselines, {at_best}", baselines, ("variant",), metrics),
            self.seed_table("The same, scored as published", published, by_problem, scores),
            self.seed_table(f"Harder settings, {at_best}", harder, by_problem, metrics),
        ]

    def headline(self, results: Sequence[Result]) -> Headline | None:
        """Return the macro accuracy of a baseline."""
        if not _baselines(results):
            return None
        name = results[0].case.get("problem")
        guess = commonest(mad_settings.BASELINES[name][0])
        caption = f"Macro accuracy, {name}."
        axis, named = f"{name.replace('_', ' ')}: macro accuracy, %", "the answer shown most often"
        return Headline(name, f"acc@{name}", caption, axis, guess, named)

    def ours(self, results: Sequence[Result], table: str) -> Ours:
        """Return each problem's mean over the settings that were run, by variant and seed.

        Scored as published, where the results have that score.
        """
        scores: dict[str, dict[int | None, dict[str, list[float]]]] = {}
        for result in best(results):
            metric = f"acc@{result.case.get('problem')}"
            values = scores.setdefault(result.case.variant, {}).setdefault(result.case.seed, {})
            score = result.metrics.get("batch_macro_accuracy", result.metrics[metric])
            values.setdefault(metric, []).append(score.value)
        return {
            variant: {seed: _means(values) for seed, values in seeds.items()}
            for variant, seeds in scores.items()
        }


def _means(values: dict[str, list[float]]) -> dict[str, float]:
    """Return the mean of each problem and, of all six, their average."""
    means = {metric: fmean(scores) for metric, scores in values.items()}
    return {**means, "acc@average": fmean(means.values())} if len(means) == len(NAMES) else means


def _baselines(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.case.get("changed") == BASELINE]


def _harder(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.case.get("changed") != BASELINE]


STUDY = MADStudy()
