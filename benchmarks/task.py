"""What a benchmark task is: its settings, its cells, its metrics and what it shows.

A task is one file of :mod:`benchmarks.tasks` that defines a subclass of :class:`Task`; its name,
its presets and its flags then appear on the command line by themselves.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.presets import Training
from symreg.cells import Cell, Compute

Line = Mapping[str, Any]
"""A result line, see :mod:`symreg.cells`."""

MEASUREMENT, TRAINING = "measurement", "training"
"""Kinds of result lines: what tables are made from, and how a model was trained."""


@dataclass(frozen=True)
class Metric:
    """What a number means.

    Attributes:
        direction: ``higher`` or ``lower`` is better; ``none`` where neither is.
        unit: Of the value, for example ``nats per byte`` or ``share``.
        about: One sentence.
    """

    direction: str
    unit: str
    about: str


@dataclass(frozen=True)
class Measured:
    """A mean over held-out examples.

    Attributes:
        value: The mean.
        n: Number of examples it is a mean of.
        stderr: Its standard error over examples; None where it is not a mean.
    """

    value: float
    n: int
    stderr: float | None = None

    @classmethod
    def mean(cls, values: Any) -> Measured:
        """Return the mean of one number per example."""
        import numpy as np

        values = np.asarray(values, np.float64)
        n = len(values)
        stderr = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else None
        return cls(float(values.mean()), n, stderr)

    def exp(self) -> Measured:
        """Return the exponential, its standard error to first order."""
        value = math.exp(self.value)
        return Measured(value, self.n, None if self.stderr is None else value * self.stderr)


@dataclass(frozen=True)
class Table:
    """A table of a report: text in cells, its header first."""

    title: str
    caption: str
    cells: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Settings:
    """What one run of a task measures; subclasses add fields with defaults.

    Attributes:
        preset: The preset these settings came from.
        about: What it is for and what it costs.
        jobs: Cells at once; None for one a core, and for one alone where there is a GPU.
    """

    preset: str
    about: str
    jobs: int | None = None

    not_flags: ClassVar[tuple[str, ...]] = ()
    """Fields that the command line cannot give: others decide them."""

    def check_given(self, preset: Any) -> None:
        """Refuse changes of a preset that would change nothing.

        Raises:
            ValueError: One was given.
        """
        from benchmarks.variants import check_re_weighted

        for name in ("exponents", "warm_up"):
            given = getattr(self, name, None)
            if given and given != getattr(preset, name):
                check_re_weighted(f"--{name.replace('_', '-')}", self.attentions)  # type: ignore[attr-defined]

    def trainings(self) -> list[Training]:
        """Return how models are trained, where any are."""
        found = (getattr(self, each.name) for each in dataclasses.fields(self))
        return [value for value in found if isinstance(value, Training)]

    def check(self, at_least: Mapping[str, float]) -> None:
        """Refuse fields below what they must be.

        Args:
            at_least: The least value of a field, or of each of its items.

        Raises:
            ValueError: A value is too small; the message names the field.
        """
        for name, least in at_least.items():
            value = getattr(self, name)
            for item in value if isinstance(value, tuple) else (value,):
                if item is None:
                    continue
                if not item >= least:
                    raise ValueError(f"{name} must be at least {least:g}, got {item:g}")
                if item == math.inf:
                    raise ValueError(f"{name} must be finite, got inf")

    def check_not_empty(self, *names: str) -> None:
        """Refuse empty lists.

        Raises:
            ValueError: A list is empty; the message names the field.
        """
        for name in names:
            if not getattr(self, name):
                raise ValueError(f"{name} must not be empty")

    def config(self) -> dict[str, Any]:
        """Return what determines the results, as plain data."""
        found = {}
        for field in dataclasses.fields(self):
            if field.name not in ("about", "jobs"):
                value = getattr(self, field.name)
                if isinstance(value, Settings):
                    value = value.config()
                elif dataclasses.is_dataclass(value):
                    value = dataclasses.asdict(value)  # type: ignore[arg-type]
                found[field.name] = value
        return found


class Task(ABC):
    """One benchmark.

    Attributes:
        name: The name on the command line and in result lines.
        version: Raised whenever the same settings would give other numbers.
        about: One sentence.
        metrics: What its measurements hold; ``loss`` stands for ``loss@4x`` too.
        presets: Its sizes by name.
        deviations: What differs from the published benchmark, and how; its reports print it.
        published: Names under which :mod:`benchmarks.published` has its tables.
        same_scale: Tables whose setting is that of the preset ``paper``: there, numbers themselves
            are compared.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    about: ClassVar[str]
    metrics: ClassVar[Mapping[str, Metric]]
    presets: ClassVar[Mapping[str, Settings]]
    deviations: ClassVar[Mapping[str, str]] = {}
    published: ClassVar[tuple[str, ...]] = ()
    same_scale: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def cells(self, settings: Any) -> list[Cell]:
        """Return every cell of a run, each after those it needs.

        Raises:
            ValueError: The settings ask for what cannot be.
        """

    @abstractmethod
    def compute(self) -> Mapping[str, Compute]:
        """Return the function of each kind of cell."""

    @abstractmethod
    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return the tables of a report, from measurements alone."""

    def ours(
        self, lines: Sequence[Line], table: str = ""
    ) -> dict[str, dict[int, dict[str, float]]]:
        """Return values in the terms of a published table: by row label, seed and metric.

        Args:
            lines: Measurements.
            table: The table's name, for tasks with tables of different settings.
        """
        found: dict[str, dict[int, dict[str, float]]] = {}
        for line in measurements(lines):
            seeds = found.setdefault(line["row"]["model"], {})
            values = seeds.setdefault(line["row"]["seed"], {})
            values |= {name: metric["value"] for name, metric in line["metrics"].items()}
        return found

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw figures into a folder and return them by caption."""
        return {}

    def measurement(
        self, row: Mapping[str, Any], seed: int | None, config: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the configuration of a cell whose line is a measurement.

        Args:
            row: What identifies the row of a table, beside the seed.
            seed: The model's seed; None where nothing was trained.
            config: What else determines the result.
        """
        return {
            "task": self.name,
            "task_version": self.version,
            "line_kind": MEASUREMENT,
            "row": {**row, "seed": seed},
            "seed": seed,
            **config,
        }

    def metric(self, name: str) -> Metric:
        """Return what a metric means.

        Raises:
            ValueError: The task does not declare it.
        """
        found = self.metrics.get(name) or self.metrics.get(name.partition("@")[0])
        if found is None:
            raise ValueError(
                f"unknown metric {name!r} of {self.name}; choose from {', '.join(self.metrics)}"
            )
        return found

    def line(
        self, config: Mapping[str, Any], metrics: Mapping[str, Measured], **more: Any
    ) -> dict[str, Any]:
        """Return the typed part of a measurement's result line.

        Raises:
            ValueError: A metric that the task does not declare.
        """
        found = {
            name: {**dataclasses.asdict(value), "direction": self.metric(name).direction}
            for name, value in metrics.items()
        }
        return {"task_version": self.version, "metrics": found, **more}


def measurements(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that tables are made from."""
    return [x for x in lines if x["kind"] == MEASUREMENT and x["status"] == "ok"]


def by_seed(
    lines: Sequence[Line], metric: str, *names: str
) -> dict[tuple[Any, ...], dict[int, float]]:
    """Return the values of a metric by seed, for each combination of some parts of the row.

    Raises:
        ValueError: Two lines have the same parts and seed.
    """
    found: dict[tuple[Any, ...], dict[int, float]] = {}
    for line in measurements(lines):
        if metric in line["metrics"]:
            key, seed = tuple(line["row"].get(name) for name in names), line["row"]["seed"]
            values = found.setdefault(key, {})
            if seed in values:
                raise ValueError(f"{metric}: two lines of {key}, seed {seed}")
            values[seed] = line["metrics"][metric]["value"]
    return found
