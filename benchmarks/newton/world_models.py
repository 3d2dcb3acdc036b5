"""The table of world models: errors of the next point, beside those of references."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from orbits.runs.result import Metric, Result, grouped
from orbits.runs.table import NOTHING, Column, Table, Value, interval, mean_over_seeds
from worldmodel.controls.names import IN_BINS, TABLE
from worldmodel.probes.implied.words import together

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
CONTINUED = "continued orbits"
"""The kind of results about the law of a model's own continuations, and their metric."""
EXPONENT = "exponent_within"
CONTINUES = Column(
    "continues by r^",
    "the power of the distance that its own continuations of held-out orbits obey along each orbit",
)


def world_models(results: Iterable[Result]) -> Table:
    """Return models in order of their likelihood, then references in order of their error.

    The law of their continuations has a column where it was asked for.
    """
    results = [x for x in results if x.case.kind in ("next point", CONTINUED)]
    failed = Counter(
        x.case.variant for x in results if x.status == "failed" and x.case.kind == "next point"
    )
    trained: dict[str, list[Result]] = {}
    references: dict[str, dict[str, Metric]] = {}
    for result in results:
        if result.ok and result.case.seed is None:
            references.setdefault(result.case.variant, {}).update(result.metrics)
        elif result.ok:
            trained.setdefault(result.case.variant, []).append(result)
    law = (EXPONENT,) if any(x.case.kind == CONTINUED for x in results) else ()
    models = [
        _row(
            name,
            _trainings([x for x in each if x.case.kind == "next point"], failed[name]),
            [
                *(_over_seeds(each, metric, ".3g") for metric in METRICS),
                *(_over_seeds(each, metric, ".2f") for metric in law),
            ],
        )
        for name, each in trained.items()
    ]
    known = [
        _row(
            name,
            "reference",
            [
                *(_reference(found.get(metric)) for metric in METRICS),
                *(_reference(found.get(metric), ".2f") for metric in law),
            ],
        )
        for name, found in references.items()
    ]
    columns = [Column(heading) for heading in ("model", "seeds", *METRICS.values())]
    models.sort(key=lambda row: row[2].order or 0.0)
    known.sort(key=lambda row: math.inf if row[3].order is None else row[3].order)
    return Table(TITLE, [*columns, *(CONTINUES for _ in law)], [*models, *known], CAPTION)


def continues(results: Iterable[Result]) -> list[str]:
    """Say by which law each world model continues orbits, and each control without a model."""
    asked = (result for result in results if result.ok and result.case.kind == CONTINUED)
    found = grouped(asked, lambda result: (result.case.variant, result.case.seed is None))
    bins = found.pop((IN_BINS, True), [])
    truth = f"; the truth in bins has {_exponent(bins)}" if bins else ""
    said = [
        f"{name} continues orbits by r^{_exponent(each)} along each orbit, without a label or a "
        f"head{truth}."
        for (name, is_control), each in found.items()
        if not is_control
    ]
    others = [f"{name} {_exponent(each)}" for (name, is_control), each in found.items()
              if is_control]  # fmt: skip
    if said and others:
        said.append(
            f"The same without a trained model: {'; '.join(others)}. What {TABLE} has too is no "
            "proof of a law."
        )
    return said


def _over_seeds(results: Iterable[Result], metric: str, form: str) -> Value:
    values = [found for x in results if (found := x.value(metric)) is not None]
    return mean_over_seeds(values, form) if values else NOTHING


def _trainings(asked: Sequence[Result], failed: int) -> str:
    return f"{len(asked)}, {failed} failed" if failed else str(len(asked))


def _exponent(results: Sequence[Result]) -> str:
    value, low, high = together(results)
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _row(name: str, seeds: str, values: Iterable[Value]) -> list[Value]:
    return [Value(name, kind="name"), Value(seeds), *values]


def _reference(metric: Metric | None, form: str = ".3g") -> Value:
    if metric is None:
        return Value("")
    return interval(metric.interval or [metric.value], form)
