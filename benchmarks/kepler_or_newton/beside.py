"""The published transition beside ours, and the verdicts on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks.kepler_or_newton.scores import Carried, along, carried
from benchmarks.published import compare
from benchmarks.published import tables as published
from benchmarks.study import comparison_table
from orbits.runs.page import Report, Section
from orbits.runs.result import Result

CONTEXT, NOISE = "kepler_newton_figure_6", "kepler_newton_figure_5"
"""Published tables: read-outs by context length, and errors of rollouts by noise."""
READ = {
    "F": "r2_log_force",
    "Fx": "r2_force_vector",
    "Fy": "r2_force_vector",
    "a": "r2_semi_major",
    "b": "r2_semi_minor",
    "Ax": "r2_eccentricity_vector",
    "Ay": "r2_eccentricity_vector",
}
"""Our metric for each published read-out: one R² of both components, since no axis is special."""


def verdicts(results: Sequence[Result], table: str) -> list[compare.Verdict]:
    """Return the verdicts of our runs on a published table, one for each number of ours."""
    return compare.distinct(compare.verdicts(published.get(table), ours(results, table)), READ)


def ours(results: Sequence[Result], table: str) -> compare.Ours:
    """Return our values in the terms of a published table: by row, seed and metric."""
    found = carried(results)
    if table == CONTEXT:
        line = along(found, "window").values()
        return {f"{each.point.steps:g} steps": _read_outs(each) for each in line if each.point}
    return {
        f"noise {x:g}": {
            seed: {"rollout": value} for seed, value in each.values("rollout_error").items()
        }
        for x, each in along(found, "noise").items()
    }


def with_published(report: Report, results: Sequence[Result], setting: str) -> Report:
    """Return a report with the published numbers beside ours."""
    there = [result for result in results if result.ok]
    made = [
        comparison_table(published.get(table), ours(there, table), setting, False, measures=READ)
        for table in (CONTEXT, NOISE)
    ]
    more = [Section(table.title, [table]) for table in made]
    return dataclasses.replace(report, sections=[*report.sections, *more])


def _read_outs(each: Carried) -> dict[int | None, dict[str, float]]:
    found: dict[int | None, dict[str, float]] = {}
    for name, metric in READ.items():
        for seed, value in each.best(metric).items():
            found.setdefault(seed, {})[name] = value
    return found
