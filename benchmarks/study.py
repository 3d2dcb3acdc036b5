"""The base of studies of published benchmarks, with deviations and published numbers."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import yaml

from benchmarks.published import compare
from benchmarks.published import tables as published
from benchmarks.published.tables import PublishedTable
from orbits.runs.deferred import deferred
from orbits.runs.page import Report, Section
from orbits.runs.result import Result
from orbits.runs.study import Study
from orbits.runs.table import Column, Table, Value, mean_over_seeds

MEASUREMENT = "measurement"
"""The kind of results in tables."""
REPEATS = ("seeds", "checkpoints")
"""Settings that choose trainings of the experiment and do not change it."""
check_devices = deferred("benchmarks.training:check_devices")
check_re_weighted = deferred("benchmarks.variants:check_re_weighted")


class TrainingStudy(Study):
    """A study whose cells train or evaluate models, on a GPU where there is one.

    Attributes:
        re_weighting: Settings of re-weighted variants, refused where no ``attention`` is one.
    """

    re_weighting: ClassVar[tuple[str, ...]] = ("exponents",)
    prepare = staticmethod(deferred("benchmarks.worker:prepare"))
    workers = deferred("benchmarks.worker:workers")

    def check(self, settings: Any) -> None:
        """Refuse missing devices."""
        check_devices(settings.training)

    def check_changes(self, settings: Any, changes: Mapping[str, Any]) -> None:
        """Refuse settings of the re-weighting where no variant is re-weighted."""
        for name in self.re_weighting:
            if changes.get(name):
                check_re_weighted(f"--{name.replace('_', '-')}", settings.attention)


@runtime_checkable
class Judged(Protocol):
    """A study whose results are compared with published numbers."""

    def verdicts(
        self, results: Sequence[Result], config: Mapping[str, Any]
    ) -> Mapping[str, list[compare.Verdict]]:
        """Return the verdicts of results on each number of the published tables, by table."""


class PaperStudy(TrainingStudy):
    """A study whose report has the deviations from a published benchmark, and its numbers.

    The deviations are in the YAML of its presets, under ``deviations``: what differs, and how.

    Attributes:
        published: Names under which :mod:`benchmarks.published.tables` has its tables.
        same_scale: Tables whose setting is that of the preset ``paper``: there, numbers themselves
            are compared.
        only_if_run: Whether a report leaves the published tables out where no run is like theirs.
    """

    published: ClassVar[tuple[str, ...]] = ()
    same_scale: ClassVar[tuple[str, ...]] = ()
    only_if_run: ClassVar[bool] = False

    @property
    def deviations(self) -> Mapping[str, str]:
        """Deviations from the published benchmark, by subject."""
        text = Path(inspect.getfile(type(self))).with_suffix(".yaml").read_text(encoding="utf-8")
        return yaml.safe_load(text).get("deviations", {})

    def ours(self, results: Sequence[Result], table: str) -> compare.Ours:
        """Return values in the terms of a published table: by row label, seed and metric.

        Args:
            results: Results that there are.
            table: The name of the table.
        """
        ours: dict[str, dict[int | None, dict[str, float]]] = {}
        for result in results:
            if result.case.kind != MEASUREMENT:
                continue
            values = ours.setdefault(result.case.variant, {}).setdefault(result.case.seed, {})
            values |= {name: metric.value for name, metric in result.metrics.items()}
        return ours

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return the report of a run with the published numbers at its end."""
        report = super().report(results, config, out)
        there = [result for result in results if result.ok]
        more = [deviation_table(self.deviations)] if there and self.deviations else []
        more += self.beside_published(there, config)
        sections = [*report.sections, *(Section(table.title, [table]) for table in more)]
        return dataclasses.replace(report, sections=sections)

    def beside_published(self, results: Sequence[Result], config: Mapping[str, Any]) -> list[Table]:
        """Return each published table with our numbers and the verdicts of their intervals."""
        if self.only_if_run and not any(self.ours(results, name) for name in self.published):
            return []
        setting = self.setting(config)
        return [
            comparison_table(table, ours, setting, same_scale)
            for table, ours, same_scale in self._compared(results, config)
        ]

    def verdicts(
        self, results: Sequence[Result], config: Mapping[str, Any]
    ) -> dict[str, list[compare.Verdict]]:
        """Return the verdicts of results on each number of the published tables, by table."""
        there = [result for result in results if result.ok]
        return {
            table.table: compare.verdicts(table, ours, same_scale)
            for table, ours, same_scale in self._compared(there, config)
        }

    def _compared(
        self, results: Sequence[Result], config: Mapping[str, Any]
    ) -> Iterator[tuple[PublishedTable, compare.Ours, bool]]:
        """Yield each published table with our values, and whether they are of its own setting."""
        changed = self.changes(config).keys() - set(REPEATS)
        as_published = config["preset"] == "paper" and not changed and not config.get("checkpoints")
        for name in self.published:
            for table in published.tables(name):
                ours = self.ours(results, table.table)
                yield table, ours, as_published and table.table in self.same_scale


def curves_of(results: Sequence[Result], metric: str) -> dict[str, dict[float, list[float]]]:
    """Return the values of ``metric@Nx`` by variant and N, one per seed."""
    curves: dict[str, dict[float, list[float]]] = {}
    for result in results:
        for name, value in result.metrics.items():
            word, _, place = name.partition("@")
            if word == metric:
                points = curves.setdefault(result.case.variant, {})
                points.setdefault(float(place.removesuffix("x")), []).append(value.value)
    return curves


def deviation_table(deviations: Mapping[str, str]) -> Table:
    """Return the deviations from the published benchmark as a table."""
    return Table.of_text(
        "How this differs from the published benchmark",
        ("what", "how"),
        list(deviations.items()),
        "What a number beside a published one must be read with.",
    )


def comparison_table(
    table: published.PublishedTable,
    ours: compare.Ours,
    setting: str,
    same_scale: bool,
    measures: Mapping[str, str] | None = None,
) -> Table:
    """Return a published table with our numbers and the verdicts of their intervals.

    Args:
        table: The published table.
        ours: Our values, see :meth:`PaperStudy.ours`.
        setting: The setting of ours, in a sentence.
        same_scale: Whether ours have the paper's own setting: values are then compared, and not
            differences to the baseline.
        measures: Our measure for each metric, where several metrics have the same one: what is
            measured once counts once.
    """
    rows = []
    judged = compare.verdicts(table, ours, same_scale)
    for verdict in judged:
        metric, row = table.metric(verdict.metric), table.row(verdict.row)
        known = [metric.read(values) for values in ours.get(verdict.row, {}).values()]
        texts = (row.label, verdict.metric, f"{metric.read(row.values):g}")
        rows.append(
            [
                *(Value(text, kind="name") for text in texts),
                mean_over_seeds((float(x) for x in known if x is not None), bounds=metric.bounds),
                *(Value(text, kind="name") for text in (verdict.outcome, verdict.reason)),
            ]
        )
    header = ("row", "metric", "paper", "ours", "verdict", "why")
    counted = compare.distinct(judged, measures or {})
    once = ", each measure of ours counted once" * (len(counted) < len(judged))
    caption = (
        f"Paper: {table.setting}. Ours: {setting.rstrip('.')}; means over seeds. A number is "
        "judged by its difference to the table's baseline, ours paired by seed, with a 95% "
        f"interval. Of {len(counted)} numbers{once}: {compare.counts(counted)}."
    )
    title = f"{table.paper}, {table.place}, beside ours"
    return Table(title, [Column(heading) for heading in header], rows, caption)
