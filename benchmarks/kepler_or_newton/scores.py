"""Scores of each point by seed: its exponents, its errors and its best read-outs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from benchmarks.kepler_or_newton.points import ALL, TRAINED, Point
from orbits.runs.at_once import Compared, in_each
from orbits.runs.result import Result
from orbits.runs.study import Study

FORCE = ("r2_log_force", "r2_force_vector")
SHAPE = ("r2_semi_major", "r2_semi_minor", "r2_eccentricity_vector")
"""Read-outs of a Newtonian and of a Keplerian model; their means are the two scores."""
HEADINGS = {
    "r2_log_force": "ln F",
    "r2_force_vector": "force",
    "r2_semi_major": "a",
    "r2_semi_minor": "b",
    "r2_eccentricity_vector": "Laplace-Runge-Lenz",
}
SCORES = {"the force": FORCE, "the orbit's shape": SHAPE}
ROWS = "planet"
"""Rows of the scores, as in the published study: the last place seen is the planet's own."""

BySeed = Mapping[int | None, float]


@dataclass
class Carried:
    """Results of one point's models, or of a control.

    Attributes:
        name: Name in words.
        point: The point; None of a control.
        arm: The arm of the results.
        asked: Results of continuations by place and seed.
        read: Results of read-outs by rows, seed and layer.
    """

    name: str
    point: Point | None
    arm: str
    asked: dict[str, dict[int | None, Result]] = field(default_factory=dict)
    read: dict[str, dict[int | None, list[Result]]] = field(default_factory=dict)

    def values(self, metric: str, where: str = "inside") -> BySeed:
        """Return a metric of continuations or next points by seed."""
        found = {seed: x.value(metric) for seed, x in self.asked.get(where, {}).items()}
        return {seed: value for seed, value in found.items() if value is not None}

    def best(self, metric: str, rows: str = ROWS) -> BySeed:
        """Return a read-out by seed, each of the layer that has the most of it."""
        found = {
            seed: [x for result in layers if (x := result.value(metric)) is not None]
            for seed, layers in self.read.get(rows, {}).items()
        }
        return {seed: max(values) for seed, values in found.items() if values}

    def score(self, metrics: Sequence[str], rows: str = ROWS) -> BySeed:
        """Return the mean of several read-outs by seed."""
        each = [self.best(metric, rows) for metric in metrics]
        seeds = [seed for seed in each[0] if all(seed in other for other in each)]
        return {seed: fmean(other[seed] for other in each) for seed in seeds}


def carried(results: Iterable[Result]) -> list[Carried]:
    """Return models, their twins and controls in the order of the results."""
    made: dict[tuple, Carried] = {}
    for result in results:
        case = result.case
        if not result.ok or case.kind not in ("carried", "read-outs"):
            continue
        point = None if case.get("predicts") is None else Point.of(case)
        name = case.variant if point is None else point.name
        each = made.setdefault((name, case.arm), Carried(name, point, case.arm))
        if case.kind == "carried":
            each.asked.setdefault(case.get("where"), {})[case.seed] = result
        else:
            each.read.setdefault(case.get("rows"), {}).setdefault(case.seed, []).append(result)
    return list(made.values())


def models(found: Iterable[Carried]) -> list[Carried]:
    """Return the trained models, the centre of the star first."""
    return [each for each in found if each.arm == TRAINED]


def along(found: Sequence[Carried], knob: str, **changes: Any) -> dict[object, Carried]:
    """Return the models that differ from the centre in one knob alone, by its value."""
    trained = models(found)
    if not trained or trained[0].point is None:
        return {}
    centre = _without(dataclasses.replace(trained[0].point, **changes), knob)
    line = {
        getattr(each.point, knob): each for each in trained if _without(each.point, knob) == centre
    }
    if knob in ("window", "noise"):  # all rows come after the widest window
        return dict(sorted(line.items(), key=lambda x: (x[0] == ALL and knob == "window", x[0])))
    return line


def twin(found: Iterable[Carried], point: Point | None) -> Carried | None:
    """Return the models with random weights that share attention and window with a point."""
    for each in found:
        alike = each.point and point and each.point.attention == point.attention
        if each.arm != TRAINED and alike and each.point.window == point.window:  # type: ignore[union-attr]
            return each
    return None


def _without(point: Point | None, knob: str) -> tuple:
    assert point is not None
    return tuple(value for name, value in vars(point).items() if name not in (knob, "steps"))


def by_attention(found: Sequence[Carried]) -> dict[str, dict[int, Carried]]:
    """Return the models of the centre's recipe with all rows and the least window, by attention."""
    trained = models(found)
    windows = [window for window in along(found, "window") if window != ALL]
    made: dict[str, dict[int, Carried]] = {}
    for each in trained:
        asked = (ALL, *windows[:1])
        if _recipe(each) == _recipe(trained[0]) and each.point and each.point.window in asked:
            made.setdefault(each.point.attention, {})[each.point.window] = each
    return made


def all_at_once(study: Study, results: Sequence[Result]) -> Compared:
    """Return all attentions at once, in force and shape, with all rows and in the least window."""
    measures: dict[str, dict[str, BySeed]] = {}
    for name, both in by_attention(carried(results)).items():
        for window, each in both.items():
            where = "all rows" if window == ALL else f"window {window}"
            for what, metrics in SCORES.items():
                measures.setdefault(f"R² of {what}, {where}", {})[name] = each.score(metrics)
    return in_each(measures)


def _recipe(each: Carried) -> tuple | None:
    point = each.point
    return None if point is None else (point.predicts, point.input, point.noise)
