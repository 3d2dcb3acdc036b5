"""Scores of each row: metrics by setting, over the seeds of its trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from benchmarks.worlds.names import (
    ALONE,
    CEILING,
    CONTROLS,
    FAMILY,
    HALF,
    MIXTURE,
    TABLE_WITH_FAMILIES,
    TOLD,
    UNTRAINED,
    WITH_FAMILIES,
)
from orbits.runs import trainings
from orbits.runs.result import Metric, Result
from orbits.runs.table import Value

TRUTH = "true orbits"
NO_POWER = 4.0
"""Size of an exponent beyond which no power of the distance describes the continuations."""
PATHS = ("worlds", "truth")
"""Kinds of results that are of continuations in worlds of powers."""
ARMS = (MIXTURE, WITH_FAMILIES, TOLD, ALONE, UNTRAINED)
Setting = tuple[int, bool]
"""Steps of the prompt, and whether it has half the time step."""


@dataclass
class Row:
    """A model, a control, the ceiling or the truth.

    Attributes:
        variant: Its variant or name.
        arm: Its arm.
        single: Exponent of the one world that it was trained in; None for all others.
        found: For each setting, each metric of each training.
    """

    variant: str
    arm: str
    single: float | None = None
    found: dict[Setting, dict[str, list[Metric]]] = field(default_factory=dict)

    @property
    def is_model(self) -> bool:
        """Whether it was trained on the mixture, and not told the law."""
        return self.arm == MIXTURE

    @property
    def name(self) -> str:
        """Name in tables."""
        if self.variant == TRUTH:
            return "true orbits in bins"
        if self.single is not None:
            return f"{self.variant}, r^{self.single:g} alone"
        return f"{self.variant}, {self.arm}" if self.arm in ARMS else self.variant

    def metrics(self, metric: str, prompt: int, half: bool = False) -> list[Metric]:
        """Return the metric of each training."""
        return self.found.get((prompt, half), {}).get(metric, [])

    def value(self, metric: str, prompt: int, half: bool = False) -> float | None:
        """Return the mean over trainings; None if it was not measured."""
        values = [each.value for each in self.metrics(metric, prompt, half)]
        return sum(values) / len(values) if values else None

    def read(self, prompt: int) -> tuple[list[str], list[Metric]]:
        """Return the layer whose read-out explains most of the law, and how much, by training.

        No layers of a read-out that has no model, and nothing of runs that asked last states alone.
        """
        shares = {
            name.partition("@")[2]: each
            for name, each in self.found.get((prompt, False), {}).items()
            if name.startswith("explained@")
        }
        by_training = [
            dict(zip(shares, each, strict=True)) for each in zip(*shares.values(), strict=True)
        ]
        layers = [max(each, key=lambda name: each[name].value) for each in by_training]
        most = [each[name] for name, each in zip(layers, by_training, strict=True)]
        return layers if len(shares) > 1 else [], most

    def box(self, metric: str, prompt: int, half: bool = False, form: str = ".2f") -> Value:
        """Return a box of a table: over trainings, or the interval of a single one."""
        return trainings.box(self.metrics(metric, prompt, half), form)

    def said(self, metric: str, prompt: int, half: bool = False) -> str:
        """Return the metric in a sentence, with its interval."""
        return trainings.words(self.metrics(metric, prompt, half))


def rows(
    results: Sequence[Result], family: str | None = None, kinds: Sequence[str] = PATHS
) -> list[Row]:
    """Return the truth, the ceiling, models, then controls, in worlds of powers or of a family.

    Single steps (kind :data:`STEPS`) have no prompt: theirs is 0.
    """
    made: dict[tuple[str, str], Row] = {}
    kinds = kinds if family is None else (FAMILY,)
    for result in results:
        case = result.case
        if not result.ok or case.kind not in kinds or case.setting.get(FAMILY) != family:
            continue
        new = Row(case.variant, case.arm, case.setting.get("single"))
        row = made.setdefault((case.variant, case.arm), new)
        setting = int(case.setting.get("prompt", 0)), case.setting.get("time step") == HALF
        there = row.found.setdefault(setting, {})
        for name, metric in result.metrics.items():
            there.setdefault(name, []).append(metric)
    order = [TRUTH, CEILING, *ARMS, *CONTROLS, TABLE_WITH_FAMILIES]

    def place(row: Row) -> int:
        return order.index(row.arm if row.arm in ARMS else row.variant)

    return sorted(made.values(), key=place)


def families(results: Sequence[Result]) -> list[str]:
    """Return the names of the families of laws that were asked for."""
    asked = (result.case.setting[FAMILY] for result in results if result.case.kind == FAMILY)
    return list(dict.fromkeys(asked))


def find(found: Sequence[Row], name: str) -> Row | None:
    """Return the row of an arm of models, or of a control or the ceiling by its name."""
    return next((row for row in found if name in (row.arm, row.variant)), None)


def prompts(found: Sequence[Row]) -> list[int]:
    """Return the lengths of prompts, ascending."""
    return sorted({prompt for row in found for prompt, _ in row.found})


def worlds(found: Sequence[Row], metric: str = "exponent") -> list[str]:
    """Return the test worlds of which there is a metric, as their exponents in words."""
    names = {
        name.partition("@")[2]
        for row in found
        for each in row.found.values()
        for name in each
        if name.startswith(f"{metric}@")
    }
    return sorted(names, key=float)


def has_no_law(row: Row, found: Sequence[Row], longest: int) -> bool:
    """Tell whether continuations of some training obey no power law of an attraction somewhere.

    Extrapolators and models that hardly learnt anything have exponents far above those of all
    worlds, and above 0; an end of the grid of exponents is none.
    """
    most = max([0.0, *_exponents(find(found, TRUTH), found, longest)]) + 0.5
    return not all(-NO_POWER < value < most for value in _exponents(row, found, longest))


def shallower(row: Row, found: Sequence[Row], longest: int) -> tuple[float, float] | None:
    """Return the least and most exponent of a row if all are shallower than every true one."""
    own, true = _exponents(row, found, longest), _exponents(find(found, TRUTH), found, longest)
    if own and true and min(own) > max(true) + 0.1:
        return min(own), max(own)
    return None


def _exponents(row: Row | None, found: Sequence[Row], longest: int) -> list[float]:
    """Return the exponents of all trainings of a row in all worlds."""
    if row is None:
        return []
    names = (f"exponent@{world}" for world in worlds(found))
    return [each.value for name in names for each in row.metrics(name, longest)]


def leak(row: Row, found: Sequence[Row]) -> list[Metric]:
    """Return how far half the time step moves the exponents of each training, beyond the truth's.

    The mean over test worlds of the change of the exponent. A model that reads the law off the rate
    of sampling takes more points a turn for a shallower law, and goes up.
    """
    truth, longest = find(found, TRUTH), max(prompts(found), default=0)
    if truth is None:
        return []
    every = []
    for name in (f"exponent@{world}" for world in worlds(found)):
        own, true = (
            [
                half.value - whole.value
                for half, whole in zip(
                    each.metrics(name, longest, True), each.metrics(name, longest), strict=False
                )
            ]
            for each in (row, truth)
        )
        if own and true:
            every.append([change - true[0] for change in own])
    return [Metric(fmean(changes)) for changes in zip(*every, strict=True)]
