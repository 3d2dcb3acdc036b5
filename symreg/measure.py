"""Measures of force predictions, and of a symbolic search on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import laws
from orbits.runs import artefact
from orbits.runs.cell import Outcome
from orbits.runs.choices import check_choice
from symreg import engines, points
from symreg.exponents import distance_exponents, fit_exponents, prediction_metrics
from symreg.formula.local_exponents import alike
from symreg.formula.thresholds import THRESHOLDS
from symreg.points import NAMES
from symreg.predictions import Predictions
from symreg.search.front import KNEE, ROUNDING, RULES
from symreg.search.targets import MINIMUM_POINTS

POINTS = 1000
"""Points per search, as in Vafa et al. (2025)."""
BINS = 20
NAMED = {
    "exponents": "exponent_{}",
    "law_exponents": "law_exponent_{}",
    "distance_exponents": "exponent_r_{}",
}
"""Measures with a number for each variable, or within and between orbits, and their metrics."""


def predictor_metrics(data: Predictions, law: str) -> dict[str, Any]:
    """Measure predictions without any formula.

    Beside :func:`symreg.exponents.prediction_metrics` and the exponents with their intervals: the
    mean ``cosine`` of the vectors; ``distance_exponents``, those of r within and between orbits;
    ``law_exponents``, the fit to the true force on the usable points; ``residuals``, ln(predicted /
    true) in bins of each variable; ``alike``, laws that these points cannot tell from ``law``.
    """
    fitted = fit_exponents(data.X, data.force_predicted, data.sequence_id)
    usable, _ = points.usable(data.X, data.force_predicted, at_least=1)
    truth = fit_exponents(data.X[usable], data.force[usable], data.sequence_id[usable], n_boot=0)
    return {
        **prediction_metrics(data.force, data.force_predicted),
        "cosine": data.cosine(),
        **fitted.record(),
        "distance_exponents": distance_exponents(data.X, data.force_predicted, data.sequence_id),
        "law_exponents": {name: triple[0] for name, triple in truth.exponents.items()},
        "residuals": _residuals(data),
        "alike": list(alike(law, data.X)),
    }


def forces(data: Predictions, law: str) -> Outcome:
    """Return :func:`predictor_metrics` as the outcome of a cell."""
    return _outcome(predictor_metrics(data, law), counts=("n_points", "n_sequences", "n_boot"))


def search(data: Predictions, **search: Any) -> Outcome:
    """Return :func:`search_line` as the outcome of a cell."""
    line = search_line(data, **search)
    outcome = _outcome(line.pop("metrics"))
    return replace(outcome, details={**outcome.details, **line})


def _outcome(record: Mapping[str, Any], counts: Sequence[str] = ()) -> Outcome:
    """Return an outcome: numbers as metrics, one for each variable, and the rest as details.

    ``counts`` are numbers that say how it was measured, which are details.
    """
    metrics: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for name, value in record.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in NAMED:
            metrics |= {
                NAMED[name].format(x): each for x, each in value.items() if each is not None
            }
        elif value is not None and name not in counts and (is_number or name == "constant"):
            metrics[name] = value
        elif value is not None:
            details[name] = list(value) if isinstance(value, tuple) else value
    return Outcome(metrics, details)


def search_config(
    law: str,
    engine: str,
    arguments: Mapping[str, Any] | None = None,
    n: int = POINTS,
    rule: str | None = None,
) -> dict[str, Any]:
    """Return the configuration of a search as plain data: all besides the data and the seed.

    ``engine_version`` is what a table calls the search: the engine, its version, and all that is
    not default. A RuntimeError tells why the engine cannot run here.
    """
    truth = laws.get(law)
    if n < MINIMUM_POINTS:
        raise ValueError(f"the points of a search must be at least {MINIMUM_POINTS}, got {n}")
    if rule is not None:
        check_choice("rule", rule, RULES)
    default = engines.resolve(engine)[0]
    configured = default.configured(**(arguments or {}))
    changes = {name: json.dumps(value) for name, value in (arguments or {}).items()}
    if n != POINTS:
        changes["points"] = str(n)
    if rule not in (None, default.rule):
        changes["rule"] = str(rule)
    rule = rule or default.rule
    name = f"{default.name}@{default.version()}"
    return {
        "law": {"expression": truth.expression, "parameters": dict(truth.parameters)},
        "engine": default.name,
        "engine_version": " ".join([name, *(f"{key}={value}" for key, value in changes.items())]),
        "arguments": dict(arguments or {}),
        "settings": dict(configured.settings),
        "points": n,
        "rule": rule,
        "rule_settings": {"knee": KNEE, "rounding": ROUNDING} if rule == "knee" else {},
        "thresholds": dict(THRESHOLDS),
    }


def search_line(
    data: Predictions,
    *,
    law: str,
    engine: str,
    seed: int,
    arguments: Mapping[str, Any] | None = None,
    n: int = POINTS,
    rule: str | None = None,
) -> dict[str, Any]:
    """Search ``n`` points of ``data`` for a formula and score it on sequences it has not seen.

    The seed draws the points and seeds the search; ``rule`` is that of
    :meth:`symreg.search.front.Front.best`, None for the engine's own. The line holds the
    ``expression``, the ``front``, a hash of the ``settings`` and the ``metrics`` of a LawScore.
    """
    from symreg.formula.score import score  # sympy, which help and listings do without

    searcher = engines.resolve(engine)[0].configured(**(arguments or {}))
    rule = rule or searcher.rule
    training, held_out = data.split(seed, n)
    front = searcher.fit(training.X, training.force_predicted, NAMES, seed)
    expression = front.best(rule).expression
    result = score(
        expression, law, X=held_out.X, y=held_out.force_predicted, groups=held_out.sequence_id
    )
    metrics = result.record()
    del metrics["predictions"]  # the same for every search: predictor_metrics says it of all points
    return {
        "expression": expression,
        "rule": rule,
        "front": [asdict(equation) for equation in front.equations],
        "settings": artefact.key(dict(front.settings)),
        "metrics": metrics,
    }


def _residuals(data: Predictions) -> dict[str, dict[str, list[float]]]:
    """Return the median and the 5-95% band of ln(predicted / true) in bins of each variable."""
    with np.errstate(all="ignore"):
        error = np.log(data.force_predicted / data.force)
    usable = np.isfinite(error)
    if not usable.any():
        return {}
    return {
        name: _binned(column[usable], error[usable])
        for name, column in zip(NAMES, data.X.T, strict=True)
    }


def _binned(
    values: npt.NDArray[np.float64], error: npt.NDArray[np.float64]
) -> dict[str, list[float]]:
    bins = np.array_split(np.argsort(values, kind="stable"), min(BINS, len(values)))
    low, middle, high = np.array([np.percentile(error[rows], [5, 50, 95]) for rows in bins]).T
    return {
        "centre": [float(np.median(values[rows])) for rows in bins],
        "median": middle.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
    }
