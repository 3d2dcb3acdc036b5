"""The base of recall studies: models are trained at every setting of a sweep, then tested.

A table shows the rate and the decay whose *validation* accuracy, averaged over seeds, is highest:
the test examples choose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.rates import SWEPT, best
from benchmarks.recall.blind import by_place
from benchmarks.recall.problem import Problem
from benchmarks.recall.sweep import AFTER
from benchmarks.study import PaperStudy
from orbits.runs.at_once import Compared, in_each
from orbits.runs.deferred import deferred
from orbits.runs.figure import figure_path
from orbits.runs.page import Picture
from orbits.runs.plots import bars
from orbits.runs.result import Quantity, Result
from orbits.runs.statistics import Seeds
from orbits.runs.table import Table, by_variant
from orbits.runs.verdict import against, beside, shown

BASELINE = "softmax"
"""The variant that others are compared with."""


def share(of: str) -> Quantity:
    """Return the quantity of a share of answers, in %."""
    return Quantity("higher", "%", f"share of {of}", bounds=(0, 100))


METRICS = {
    "val_accuracy": share("right answers on validation examples"),
    "steps": Quantity("none", "steps", "training steps until the accuracy that stops, or all"),
    "reweighted": Quantity(
        "none", "share", "1 if re-weighting was on in the end, 0 if never", bounds=(0, 1)
    ),
}
"""Metrics of every trained model."""
STOPPED = {**METRICS, "steps": Quantity("lower", "steps", METRICS["steps"].about)}
"""Metrics where training stops once the problem is solved: fewer steps are better."""


@dataclass(frozen=True)
class Headline:
    """The metric of a bar figure and its texts.

    Attributes:
        file: Name of the figure.
        metric: Name of the metric.
        caption: Caption of the figure.
        xlabel: Name of the values.
        level: Value at which a line is drawn; None for none.
        named: Meaning of the line.
    """

    file: str
    metric: str
    caption: str
    xlabel: str
    level: float | None
    named: str


class RecallStudy(PaperStudy):
    """A study that trains models at every setting of a sweep on problems and tests them.

    Attributes:
        keys: Fields of the case and of its setting that head the rows of tables.
    """

    metrics: ClassVar[Mapping[str, Quantity]] = METRICS
    re_weighting = ("exponents", "warm_up")
    keys: ClassVar[tuple[str, ...]] = ("variant", "lr", "weight_decay")
    cells = deferred("benchmarks.recall.solve:cells")

    def headline(self, results: Sequence[Result]) -> Headline | None:
        """Return the metric to draw of one exercise; None for no figure."""
        return None

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return accuracies at the best learning rate of each row, and the whole sweep."""
        names = {name for result in results for name in result.metrics}
        metrics = sorted(names, key=_column)
        at_best = "At the learning rate with the best validation accuracy, %"
        return [
            self.seed_table(at_best, best(results), self.keys, metrics),
            self.seed_table("The sweep", results, self.keys, ("val_accuracy", "steps")),
        ]

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Compare each exercise's variants with softmax, and with baselines without training."""
        exercises = {x: rows for x, rows in self._headlines(results).items() if BASELINE in rows}
        said = [_verdict(rows, x, self.quantity(x.metric)) for x, rows in exercises.items()]
        return said if len(said) < 2 else [_over_all(list(exercises.values())), *said]

    def all_at_once(self, results: Sequence[Result]) -> Compared:
        """Compare the models of each exercise at once, each at its best rate.

        A model that was re-weighted after its first stage had learned is left out: until then it
        was trained as others were.
        """
        return in_each(
            {
                headline.caption.rstrip("."): {
                    name: seeds for name, seeds in rows.items() if not name.endswith(AFTER)
                }
                for headline, rows in self._headlines(results).items()
            }
        )

    def _headlines(self, results: Sequence[Result]) -> dict[Headline, dict[str, Seeds]]:
        """Return the values of trained models by seed, for each exercise's headline."""
        found: dict[Headline, dict[str, Seeds]] = {}
        for exercise in by_exercise(best(results)).values():
            if headline := self.headline(exercise):
                values = by_variant(exercise, headline.metric)
                found[headline] = {x: seeds for x, seeds in values.items() if None not in seeds}
        return found

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw a bar per variant and a dot per seed, a figure per exercise."""
        pictures = []
        for exercise in by_exercise(best(results)).values():
            if headline := self.headline(exercise):
                trained = [result for result in exercise if result.case.seed is not None]
                values = by_variant(trained, headline.metric)
                path = figure_path(out, headline.file)
                title = headline.caption.rstrip(".").replace("_", " ")
                level = headline.level, headline.named
                drawn = bars(values, path, headline.xlabel, *level, title=title)
                pictures.append(Picture(headline.caption, [drawn]))
        return pictures


def _verdict(rows: Mapping[str, Seeds], headline: Headline, quantity: Quantity) -> str:
    """Compare variants with softmax, and softmax with baselines without training."""
    softmax = shown(rows[BASELINE], ".1f", "%", quantity.bounds)
    said = f"{headline.caption.rstrip('.')}: {BASELINE} {softmax}"
    if headline.level is not None:
        said += f", {headline.named} {headline.level:.1f}%"
        if headline.level > max(value for seeds in rows.values() for value in seeds.values()):
            said += ", which no training reaches"
    compared = beside(against(rows, BASELINE), BASELINE, ".1f", " points")
    return f"{said}; {compared}." if compared else f"{said}; nothing is compared by three seeds."


def _over_all(exercises: Sequence[Mapping[str, Seeds]]) -> str:
    """Count the exercises in which each variant differs from softmax."""
    families = [against(rows, BASELINE) for rows in exercises]
    alike: dict[tuple[int, int], list[str]] = {}
    for name in dict.fromkeys(name for family in families for name in family):
        mine = [family[name] for family in families if name in family]
        above = sum(x.differs and x.difference.value > 0 for x in mine)
        below = sum(x.differs and x.difference.value < 0 for x in mine)
        if above or below:
            alike.setdefault((above, below), []).append(name)
    said = [f"{', '.join(x)}: above in {a}, below in {b}" for (a, b), x in alike.items()]
    said.append("of the others no difference is shown" if said else "no difference is shown")
    return f"Beside {BASELINE} on {len(exercises)} problems: {'; '.join(said)}."


def recall_headline(kind: Callable[..., Problem], length: int, pairs: int, width: int) -> Headline:
    """Return the accuracy of a kind of recall at a load, beside that of answers by places alone."""
    file, metric = f"accuracy_{length}_{pairs}_{width}", f"accuracy@{length}/{pairs}"
    caption = f"Right answers, {pairs} pairs in {length} tokens, width {width}."
    level = by_place(kind(seq_len=length, n_pairs=pairs))
    return Headline(file, metric, caption, "right answers, %", level, "by places alone, no look-up")


def by_exercise(results: Sequence[Result]) -> dict[tuple, list[Result]]:
    """Return results by the values of their setting, rates and decays left out."""
    groups: dict[tuple, list[Result]] = {}
    for result in results:
        setting = (v for name, v in result.case.setting.items() if name not in SWEPT)
        groups.setdefault(tuple(setting), []).append(result)
    return groups


def _column(metric: str) -> tuple[bool, list[int], str]:
    """Return the order of a metric: those of the tests first, by the numbers in their names."""
    return metric in METRICS, [int(number) for number in re.findall(r"\d+", metric)], metric
