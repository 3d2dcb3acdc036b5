"""The table of world models: errors of the next point, beside those of references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from orbits.runs.result import Metric, Result
from orbits.runs.table import Column, Table, Value, interval, mean_over_seeds

TITLE = "World models"
CAPTION = (
    "Second half of held-out sequences, from the true rows before each. Models: mean over "
    "trainings. References: mean over sequences."
)
METRICS = {
    "nll": "nats per point",
    "planet_error": "planet error, AU",
    "star_error": "star error, AU",
}
"""Metrics and their headings."""


def world_models(results: Iterable[Result]) -> Table:
    """Return models in order of their likelihood, then references in order of their error."""
    results = [result for result in results if result.case.kind == "next point"]
    failed = Counter(result.case.variant for result in results if result.status == "failed")
    trained: dict[str, list[Result]] = {}
    references: list[Result] = []
    for result in results:
        if result.ok and result.case.seed is None:
            references.append(result)
        elif result.ok:
            trained.setdefault(result.case.variant, []).append(result)
    models = [
        _row(
            name,
            f"{len(each)}, {failed[name]} failed" if failed[name] else str(len(each)),
            [mean_over_seeds([x.metrics[metric].value for x in each], ".3g") for metric in METRICS],
        )
        for name, each in trained.items()
    ]
    known = [
        _row(
            result.case.variant,
            "reference",
            [_reference(result.metrics.get(metric)) for metric in METRICS],
        )
        for result in references
    ]
    columns = [Column(heading) for heading in ("model", "seeds", *METRICS.values())]
    models.sort(key=lambda row: row[2].order or 0.0)
    known.sort(key=lambda row: row[3].order or 0.0)
    return Table(TITLE, columns, [*models, *known], CAPTION)


def _row(name: str, seeds: str, values: Iterable[Value]) -> list[Value]:
    return [Value(name, kind="name"), Value(seeds), *values]


def _reference(metric: Metric | None) -> Value:
    if metric is None:
        return Value("")
    return interval(metric.interval or [metric.value])
