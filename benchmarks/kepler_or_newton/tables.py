"""Tables: scores of models, scores of controls, and every read-out by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.kepler_or_newton.points import RANDOM, TRAINED
from benchmarks.kepler_or_newton.scores import FORCE, HEADINGS, SHAPE, BySeed, Carried, carried
from orbits.runs.result import Result
from orbits.runs.study import Study
from orbits.runs.table import NOTHING, Column, Table, Value, interval, mean_over_seeds
from worldmodel.probes.quantities import BODIES

MODELS = "World models by head, noise, context and attention"
MODELS_CAPTION = (
    "One knob at a time around the first row. Exponent of the distance that a model's own "
    "continuations obey along each orbit, in the training box and closer to the star than any "
    "orbit in it; the law is -2. Force and shape: mean R² of read-outs at the planet's rows, each "
    "from the layer that has the most of it (ln F and force; a, b and the Laplace-Runge-Lenz "
    "vector). Nats of a next row, of a density as of bins. Rollout: mean error in AU. Means over "
    "trainings with 95% intervals; of three trainings R², which is bounded, one by one."
)
REFERENCES = "Continuations without a model"
REFERENCES_CAPTION = (
    "The same prompts. An exponent of -2 is no proof of a law: a table of training orbits has it "
    "too. Intervals: 95% over sequences."
)
READ = "Read-outs"
READ_CAPTION = (
    "R² on held-out sequences of ridge regressions, best layer, at the planet's and at the star's "
    "rows of the second half; what is read is the planet's state at the same time. Last places: "
    "exact, with the time step, without a model. What random weights have, a training need not "
    "have put there."
)
R2 = (-math.inf, 1)
"""Bounds of R²."""


def tables(study: Study, results: Sequence[Result]) -> list[Table]:
    """Return models, controls and read-outs."""
    found = carried(results)
    return [_models(found), _references(found), _read_outs(found)]


def _models(found: Sequence[Carried]) -> Table:
    headings = ("model", "exponent", "exponent, closer", "force R²", "shape R²", "nats", "rollout")
    rows = []
    for each in found:
        if each.arm not in (TRAINED, RANDOM):
            continue
        inside, closer = (each.values("exponent_within", x) for x in ("inside", "closer"))
        rows.append(
            [
                _name(each),
                _over(inside, ".2f"),
                _over(closer, ".2f"),
                _over(each.score(FORCE), ".2f", R2),
                _over(each.score(SHAPE), ".2f", R2),
                _over(each.values("nll"), ".2f"),
                _over(each.values("rollout_error"), ".3f"),
            ]
        )
    return Table(MODELS, [Column(x) for x in headings], rows, MODELS_CAPTION)


def _references(found: Sequence[Carried]) -> Table:
    headings = ("continued by", "exponent", "exponent, closer", "rollout")
    rows = [
        [
            Value(each.name, kind="name"),
            _one(each, "exponent_within", "inside", ".2f"),
            _one(each, "exponent_within", "closer", ".2f"),
            _one(each, "rollout_error", "inside", ".3f"),
        ]
        for each in found
        if each.point is None and each.asked
    ]
    return Table(REFERENCES, [Column(x) for x in headings], rows, REFERENCES_CAPTION)


def _read_outs(found: Sequence[Carried]) -> Table:
    rows = [
        [_name(each), Value(body, kind="name")]
        + [_read_out(each, metric, body) for metric in HEADINGS]
        for each in found
        for body in BODIES
        if each.read.get(body)
    ]
    return Table(
        READ, [Column(x) for x in ("model", "rows", *HEADINGS.values())], rows, READ_CAPTION
    )


def _read_out(each: Carried, metric: str, body: str) -> Value:
    """Return a read-out over trainings, or that of a control with its interval over sequences."""
    if each.point is not None:
        return _over(each.best(metric, body), ".2f", R2)
    ((result,),) = each.read[body].values()
    return interval(result.metrics[metric].interval, ".2f")


def _name(each: Carried) -> Value:
    if each.arm != RANDOM or each.point is None:
        return Value(each.name, kind="name")
    return Value(f"{each.point.attention}, {each.point.context}: {RANDOM}", kind="name")


def _over(values: BySeed, form: str, bounds: tuple[float, float] | None = None) -> Value:
    return mean_over_seeds(values.values(), form, bounds) if values else NOTHING


def _one(each: Carried, metric: str, where: str, form: str) -> Value:
    (result,) = each.asked.get(where, {None: None}).values()
    return NOTHING if result is None else interval(result.metrics[metric].interval, form)
