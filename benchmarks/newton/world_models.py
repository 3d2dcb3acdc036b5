"""The table of world models: errors of the next point, beside those of references."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from orbits.runs.result import Result, grouped
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
BY_POWER = (
    "continues by r^",
    "the power of the distance that its own continuations of held-out orbits obey along each orbit",
)
"""The heading of that metric, and its meaning."""


def world_models(results: Iterable[Result]) -> Table:
    """Return models in order of their likelihood, then references in order of their error.

    The law of their continuations has a column where it was asked for.
    """
    asked = [x for x in results if x.case.kind in ("next point", CONTINUED)]
    groups = grouped(asked, lambda result: (result.case.variant, result.case.seed is None))
    there = [group for group in groups.values() if any(result.ok for result in group)]
    has_law = any(result.case.kind == CONTINUED for result in asked)
    columns = [
        Column("model", value=lambda group: Value(group[0].case.variant, kind="name")),
        Column("seeds", value=_trainings),
        *(Column(heading, value=_over(metric)) for metric, heading in METRICS.items()),
        *([Column(*BY_POWER, value=_over(EXPONENT, ".2f"))] if has_law else ()),
    ]
    nll, error = _over("nll"), _over("planet_error")
    models = [group for group in there if group[0].case.seed is not None]
    references = [group for group in there if group[0].case.seed is None]
    models.sort(key=lambda group: nll(group).order or 0.0)
    references.sort(key=lambda x: math.inf if (at := error(x).order) is None else at)
    return Table.of(TITLE, [*models, *references], columns, CAPTION)


def _trainings(group: Sequence[Result]) -> Value:
    """Return how many trainings of a model were asked; a reference has none."""
    if group[0].case.seed is None:
        return Value("reference")
    asked = [result for result in group if result.case.kind == "next point"]
    failed = sum(result.status == "failed" for result in asked)
    return Value(f"{sum(x.ok for x in asked)}" + (f", {failed} failed" if failed else ""))


def _over(metric: str, form: str = ".3g") -> Callable[[Sequence[Result]], Value]:
    """Return the column of a metric: over trainings, or over the sequences of a reference."""

    def value(group: Sequence[Result]) -> Value:
        found = [result.metrics[metric] for result in group if metric in result.metrics]
        if group[0].case.seed is not None:
            return mean_over_seeds((x.value for x in found), form) if found else NOTHING
        return interval(found[-1].interval or [found[-1].value], form) if found else Value("")

    return value


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


def _exponent(results: Sequence[Result]) -> str:
    return interval(together(results), ".2f").words
