"""The table of how well world models predict the next point, from a run's result lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.task import Table
from benchmarks.views import mean_with_interval
from worldmodel.intervals import MINIMUM_SEEDS, over_seeds

CAPTION = (
    "Second half of held-out sequences, from the true rows before each. Models: mean over "
    f"trainings, and its 95% interval by Student's t from {MINIMUM_SEEDS} on. References: mean, "
    "and its interval over sequences."
)


@dataclass(frozen=True)
class NextPoint:
    """One row.

    Attributes:
        model: The model, or the reference.
        seeds: Trainings; 0 for a reference.
        failed: Trainings that failed, or were never asked because of that.
        nll: Nats of a row's two bins together, [value, low, high], or [value] with too few seeds;
            None for a reference.
        planet_error: AU, likewise.
        star_error: AU, likewise.
    """

    model: str
    seeds: int
    failed: int
    nll: list[float] | None
    planet_error: list[float]
    star_error: list[float]


def rows(lines: Iterable[Mapping[str, Any]]) -> list[NextPoint]:
    """Return models in order of their likelihood, then references in order of their error."""
    lines = [line for line in lines if line["kind"] == "next point"]
    asked = [line for line in lines if line["status"] == "ok"]
    failed = Counter(line["row"]["model"] for line in lines if line["status"] == "failed")
    trained: dict[str, list[Mapping[str, list[float]]]] = {}
    references: dict[str, dict[str, list[float]]] = {}
    for line in asked:
        if line["row"]["seed"] is not None:
            trained.setdefault(line["row"]["model"], []).append(line["metrics"])
            continue
        for name, value in line["metrics"].items():
            who, metric = name.split(": ")
            references.setdefault(who, {})[metric] = value
    models = [
        NextPoint(
            name,
            len(found),
            failed[name],
            *(_mean([m[k][0] for m in found]) for k in ("nll", "planet_error", "star_error")),
        )
        for name, found in trained.items()
    ]
    known = [
        NextPoint(name, 0, 0, None, found["planet_error"], found["star_error"])
        for name, found in references.items()
    ]
    return [
        *sorted(models, key=lambda row: row.nll or []),
        *sorted(known, key=lambda row: row.planet_error),
    ]


def table(found: Iterable[NextPoint]) -> Table:
    """Return the rows as text."""
    header = ["model", "seeds", "nats per point", "planet error, AU", "star error, AU"]
    body = [
        [
            row.model,
            str(row.seeds or "reference") + (f", {row.failed} failed" if row.failed else ""),
            *(
                "" if value is None else mean_with_interval(value, ".3g")
                for value in (row.nll, row.planet_error, row.star_error)
            ),
        ]
        for row in found
    ]
    return Table("World models", CAPTION, [header, *body])


def _mean(values: list[float]) -> list[float]:
    return over_seeds(values) if len(values) >= MINIMUM_SEEDS else [fmean(values)]
