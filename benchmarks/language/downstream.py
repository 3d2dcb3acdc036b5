"""Zero-shot downstream tasks of trained language models, by lm-evaluation-harness.

LSSAR (2026), Tables 2, A1 and A2; Lazy Attention, Table 1. ``acc_norm`` divides a choice's
log-likelihood by its characters (LSSAR), ``acc_n`` rescales an accuracy against chance (Lazy
Attention, C.3): two metrics with two names. A task whose data cannot be reached is a skipped
cell that says so: the next run tries it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from benchmarks.language.base import (
    TRAINING_METRICS,
    LanguageModels,
    LanguageStudy,
    measured,
)
from benchmarks.language.zero_shot import catalogue
from benchmarks.published.compare import Ours
from orbits.runs.deferred import deferred
from orbits.runs.figure import figure_path
from orbits.runs.page import Picture
from orbits.runs.plots import bars
from orbits.runs.result import Metric, Quantity, Result
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.table import Table, by_variant

NAMES = {"perplexity": "ppl", "word_perplexity": "ppl"}
"""The papers' names of the harness's metrics."""
KINDS = {
    "acc": Quantity("higher", "%", "right answers, by log-likelihood", bounds=(0, 100)),
    "acc_norm": Quantity(
        "higher", "%", "right answers, by log-likelihood per character", bounds=(0, 100)
    ),
    "acc_n": Quantity(
        "higher",
        "%",
        "acc rescaled so that chance is 0 and perfection 100 (Lazy Attention, C.3), not acc_norm; "
        "the paper's columns acc_n are taken to be this, but their numbers look like acc_norm",
    ),
    "ppl": Quantity("lower", "perplexity", "perplexity per word; in LAMBADA, of the last one"),
    "rouge1": Quantity(
        "higher", "%", "ROUGE-1 F1 of a summary with its best reference", bounds=(0, 100)
    ),
}
"""The papers' metrics; those in % are shares in the harness."""


@dataclass(frozen=True)
class Downstream(LanguageModels):
    """Settings of language models and of their tasks.

    Attributes:
        tasks: Names of tasks of lm-evaluation-harness, or ``summscreen``.
        limit: Most samples per task; None for all.
        include_path: A folder of further tasks of the harness, as YAML files.
        scrolls: A ``validation.jsonl`` of SummScreen; None for the hub's.
    """

    tasks: tuple[str, ...] = catalogue.names()
    limit: int | None = None
    include_path: str | None = None
    scrolls: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_empty(self, "tasks")
        check_at_least(self, {"limit": 1})
        if twice := [name for name, n in Counter(self.tasks).items() if n > 1]:
            raise ValueError(f"duplicate {', '.join(twice)} in tasks; keep one")
        if self.scrolls is not None and not Path(self.scrolls).is_file():
            raise FileNotFoundError(f"{self.scrolls}: no such file")
        if self.include_path is not None and not Path(self.include_path).is_dir():
            raise FileNotFoundError(f"{self.include_path}: no such folder of tasks")

    def inputs(self, task: str) -> dict[str, Path]:
        """Return the user's files that a task reads: their content decides its scores."""
        if task == catalogue.SUMMSCREEN:
            return {"scrolls": Path(self.scrolls)} if self.scrolls else {}
        return {"include_path": Path(self.include_path)} if self.include_path else {}


def columns(task: str, metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return the metrics of a task, shares as per cent: of the papers' tasks, their columns."""
    named = {}
    for name, metric in metrics.items():
        label = _label(name, task)
        if label in METRICS or task not in catalogue.names():
            if name in KINDS and KINDS[name].unit == "%":
                error = metric.stderr
                percent = None if error is None else 100 * error
                metric = replace(metric, value=100 * metric.value, stderr=percent)
            named[label] = metric
    return named


def _declared() -> dict[str, Quantity]:
    """Return the metrics of the papers' tables, each with its papers."""
    quantities = {}
    for task in catalogue.TASKS:
        papers = {"LSSAR": task.lssar, "Lazy Attention": task.lazy}
        for metric in (*task.lssar, *task.lazy):
            kind = KINDS[NAMES.get(metric, metric)]
            where = " and ".join(paper for paper, known in papers.items() if metric in known)
            about = f"{kind.about}; a column of {where}"
            quantities[_label(metric, task.name)] = replace(kind, about=about)
    return quantities


def _label(metric: str, task: str) -> str:
    """Return the papers' name of a metric in their tasks, else the harness's."""
    return f"{NAMES.get(metric, metric) if task in catalogue.names() else metric}@{task}"


METRICS = _declared()
AVERAGED = tuple(f"{metric}@{task.name}" for task in catalogue.TASKS for metric in task.lazy
                 if NAMES.get(metric, metric) != "ppl")  # fmt: skip
"""Columns of which Lazy Attention's Table 1 prints the mean."""
OTHER = Quantity("none", "", "a metric of lm-evaluation-harness")


def _average(values: Mapping[str, float]) -> dict[str, float]:
    """Return the mean of the accuracies of Lazy Attention's Table 1, where all are there."""
    if not all(name in values for name in AVERAGED):
        return {}
    return {"acc@average": fmean(values[name] for name in AVERAGED)}


class DownstreamStudy(LanguageStudy):
    """Downstream tasks."""

    name = "downstream"
    version = 3
    about = "How well do language models do zero-shot on the papers' downstream tasks?"
    Settings = Downstream
    metrics: ClassVar[Mapping[str, Quantity]] = {**METRICS, **TRAINING_METRICS}
    published: ClassVar[tuple[str, ...]] = ("downstream", "lambada")
    cells = deferred("benchmarks.language.downstream_cells:cells")

    def ours(self, results: Sequence[Result], table: str) -> Ours:
        """Return values in the terms of a table; that of Lazy Attention has a mean of its own."""
        found = super().ours(results, table)
        return {
            row: {seed: {**values, **_average(values)} for seed, values in seeds.items()}
            for row, seeds in found.items()
        }

    def quantity(self, metric: str) -> Quantity:
        """Return the meaning of a metric; tasks of no paper have metrics of their own."""
        name = metric.partition("@")[0]
        return self.metrics.get(metric) or KINDS.get(name, OTHER)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return every metric by model."""
        if not (evaluations := measured(results)):
            return []
        metrics = dict.fromkeys(name for result in evaluations for name in result.metrics)
        shares = ", ".join(name for name, kind in KINDS.items() if kind.unit == "%")
        title = f"Zero-shot metrics; {shares} in %"
        return [self.seed_table(title, evaluations, ("variant",), metrics)]

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw each task's first metric by model."""
        pictures = []
        for task in dict.fromkeys(result.case.get("task") for result in measured(results)):
            chosen = [result for result in measured(results, task=task) if result.metrics]
            if chosen:
                metric = next(iter(chosen[0].metrics))
                values = by_variant(chosen, metric)
                path = bars(values, figure_path(out, str(task)), metric, title=f"Zero-shot: {task}")
                pictures.append(Picture(f"{metric} by model.", [path]))
        return pictures


STUDY = DownstreamStudy()
