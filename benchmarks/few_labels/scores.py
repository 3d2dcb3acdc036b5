"""The scores of a run: by attention, arm, rate and steps a table of backbones and label sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from orbits.runs.result import Result

WITH, WITHOUT, ANNEALED, NO_CHOICE = "with", "without", "annealed", "-"
"""States of the second stage in fine-tuning; attention that has none leaves no choice."""
ARMS = {WITH: "re-weighted", WITHOUT: "p = 1", ANNEALED: "annealed", NO_CHOICE: "-"}
"""Arms and their names in tables."""
FAILED = 0.5
"""Mean R2 of ln F over a backbone's label sets below which the backbone has failed."""
LAST, STOPPED = "last", "stopped"

Scores = dict[int, dict[int, float]]
"""R2 of ln F by backbone, then by label set."""


@dataclass(frozen=True)
class Group:
    """Trainings that differ in their backbone and labels alone.

    Attributes:
        variant: The attention.
        arm: A key of :data:`ARMS`.
        lr: Learning rate.
        steps: Steps.
        found: Results by when they were asked, backbone and label set.
    """

    variant: str
    arm: str
    lr: float
    steps: int
    found: dict[str, dict[int, dict[int, Result]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The group in words."""
        arm = "" if self.arm in (WITH, NO_CHOICE) else f", {ARMS[self.arm]} in fine-tuning"
        return f"{self.variant}{arm}, rate {self.lr:g}, {self.steps} steps"

    def scores(self, asked: str = LAST, metric: str = "r2_log") -> Scores:
        """Return a metric by backbone and label set."""
        return {
            backbone: {
                label_set: value
                for label_set, result in sorted(sets.items())
                if (value := result.value(metric)) is not None
            }
            for backbone, sets in sorted(self.found.get(asked, {}).items())
        }

    def means(self, asked: str = LAST) -> dict[int, float]:
        """Return each backbone's mean R2 over its label sets."""
        return {seed: fmean(sets.values()) for seed, sets in self.scores(asked).items() if sets}

    def failed(self, asked: str = LAST) -> list[int]:
        """Return the backbones that have failed."""
        return [seed for seed, mean in self.means(asked).items() if mean < FAILED]


def groups(results: Sequence[Result]) -> list[Group]:
    """Return the groups of a run in the order of its results."""
    made: dict[tuple, Group] = {}
    for result in results:
        case = result.case
        if not result.ok or case.kind != "forces" or case.arm not in ARMS or case.seed is None:
            continue
        key = (case.variant, case.arm, case.get("lr"), case.get("steps"))
        group = made.setdefault(key, Group(*key))
        backbones = group.found.setdefault(case.get("asked"), {})
        backbones.setdefault(case.seed, {})[case.get("label_set")] = result
    return list(made.values())


def controls(results: Sequence[Result]) -> dict[str, dict[int, Result]]:
    """Return the baselines' results by name and label set."""
    found: dict[str, dict[int, Result]] = {}
    for result in results:
        if result.ok and result.case.kind == "forces" and result.case.arm == "control":
            found.setdefault(result.case.variant, {})[result.case.get("label_set")] = result
    return found


def backbones(results: Sequence[Result]) -> dict[tuple[str, int], dict[str, float]]:
    """Return measurements of each backbone before its fine-tuning, by attention and seed."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for result in results:
        case = result.case
        if result.ok and case.seed is not None and case.kind in ("world model", "attention"):
            measured = {name: metric.value for name, metric in result.metrics.items()}
            found.setdefault((case.variant, case.seed), {}).update(measured)
    return found


def rectangle(scores: Mapping[int, Mapping[int, float]]) -> list[list[float]]:
    """Return backbones as rows and label sets as columns, without backbones that lack one."""
    every = {label_set for sets in scores.values() for label_set in sets}
    return [
        [sets[label_set] for label_set in sorted(every)]
        for sets in scores.values()
        if sets.keys() == every
    ]


def in_words(measure: str) -> str:
    """Return the name of a measure of backbones as a reader has it."""
    return "validation loss" if measure == "val_nll" else measure.replace("@", ", ")


def points(values: Iterable[float], form: str = ".2f", between: str = ", ") -> str:
    """Return numbers one by one."""
    return between.join(format(value, f"z{form}") for value in values)
