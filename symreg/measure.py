"""What a result line holds: the measures of one predictor, and of one symbolic search on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import artefacts, laws
from symreg import engines, points
from symreg.alike import alike
from symreg.exponents import distance_exponents, fit_exponents, prediction_metrics
from symreg.front import KNEE, ROUNDING, RULES
from symreg.points import NAMES
from symreg.predictions import Predictions
from symreg.score import THRESHOLDS, score

POINTS = 1000
"""Points per search, as in Vafa et al. (2025)."""
BINS = 20


def predictor_metrics(data: Predictions, law: str) -> dict[str, Any]:
    """Measure predictions without any formula.

    Args:
        data: The predictions.
        law: The true law, a name of :mod:`orbits.laws`.

    Returns:
        Errors and R2 (:func:`symreg.exponents.prediction_metrics`), the mean ``cosine`` of the
        vectors, the exponents with their bootstrap intervals, ``distance_exponents``: that of r
        within and between orbits, ``law_exponents``: the fit of the exponents to the true force
        where the predictions are usable, ``residuals``: ln(predicted / true) over
        equally filled bins of each variable, and ``alike``: laws that these points cannot tell
        from ``law``.

    Raises:
        ValueError: Too few usable points, or points that do not determine the exponents.
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


def search_config(
    law: str,
    engine: str,
    arguments: Mapping[str, Any] | None = None,
    n: int = POINTS,
    rule: str | None = None,
) -> dict[str, Any]:
    """Return, as plain data, all that determines a search line besides the data and the seed.

    Arguments are those of :func:`search_line`. ``engine_version`` is what a table calls the
    search: the engine, its version, and all that is not default.

    Raises:
        ValueError: There is no such law, engine, argument or rule, or ``n`` is not positive.
        RuntimeError: The engine cannot run here.
    """
    truth = laws.get(law)
    if n < 1:
        raise ValueError(f"the points of a search must be at least 1, got {n}")
    if rule is not None and rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}; choose from {', '.join(RULES)}")
    default = engines.resolve(engine)[0]
    chosen = default.configured(**(arguments or {}))
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
        "settings": dict(chosen.settings),
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
    """Search some points of ``data`` for a formula and score it on sequences it has not seen.

    Args:
        data: The predictions.
        law: The law to compare with.
        engine: A name of :func:`symreg.engines.names`.
        seed: Draws the points and seeds the search.
        arguments: Changes to the engine's own; see :meth:`symreg.engines.Engine.configured`.
        n: Number of points that the search sees.
        rule: How a formula is chosen; see :meth:`symreg.front.Front.best`. None for the engine's
            own rule.

    Returns:
        The ``expression``, the whole ``front``, a hash of the ``settings`` and the ``metrics`` of
        :class:`symreg.score.LawScore`.

    Raises:
        ValueError: There is no such law, engine or rule, or too few points are usable.
        RuntimeError: The engine cannot run here, or found no finite formula.
    """
    chosen = engines.resolve(engine)[0]
    if arguments:
        chosen = chosen.configured(**arguments)
    rule = rule or chosen.rule
    seen, held_out = data.split(seed, n)
    front = chosen.fit(seen.X, seen.force_predicted, NAMES, seed)
    expression = front.best(rule).expression
    result = score(
        expression, law, X=held_out.X, y=held_out.force_predicted, groups=held_out.sequence_id
    )
    return {
        "expression": expression,
        "rule": rule,
        "front": [
            {"complexity": row.complexity, "loss": row.loss, "expression": row.expression}
            for row in front.equations
        ],
        "settings": artefacts.key(dict(front.settings)),
        "metrics": result.record(),
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
