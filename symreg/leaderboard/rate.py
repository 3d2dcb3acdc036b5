"""Law rates: how often an engine's searches find each law, from their results.

Intervals over searches are 95% percentile bootstraps of the median; they say how the engine varies
on these predictions, not how the model varies between trainings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from orbits import laws
from orbits.runs.result import Result
from orbits.runs.statistics import Interval, wilson
from symreg.points import NAMES

N_BOOT = 2000
STRICT = 0.02
"""Largest difference of a formula's exponents from the law's, beside the verdict's 0.05."""
NO_LAW, NOT_COMPARED = "none", "not compared"
"""Names for a formula that is no law of the registry, and for one without a comparison."""


@dataclass(frozen=True)
class LawRate:
    """Laws that one engine finds for one row; intervals are (median, low, high) over searches.

    Attributes:
        engine: Engine and version.
        world: The law that rules where the predictions come from.
        found: Number of searches whose verdict is ``law``.
        strict: Number of these whose exponents are within :data:`STRICT` of the law's; None for a
            law without exponents.
        total: Number of searches, failed ones included.
        failed: Number of searches that failed.
        low: Lower end of the Wilson 95% interval of found / total.
        high: Upper end of it.
        verdicts: Number of searches that ended in each verdict.
        laws: Number of searches that found each law of the registry, whatever the law of the world;
            :data:`NO_LAW` for formulas that are none of them.
        found_nooff: Searches that found the law once an additive constant is dropped.
        symbolic: Number of formulas that equal the law symbolically, up to the constant.
        timeouts: Number of symbolic comparisons that ran out of time, which is not a no.
        constant: Constant among the laws found.
        r2_log: R2 of ln formula against ln predictions.
        error_in_range: Relative error of the formula to the true law on held-out points.
        error_outside: The same outside the range of the points.
        complexity: Nodes of the formulas.
        cpu_s: CPU seconds of a search and its scoring, in the median.
        shape: The most frequent shape of the formulas.
        shape_count: Number of formulas of that shape.
        shapes: Number of different shapes.
    """

    engine: str
    world: str
    found: int
    strict: int | None
    total: int
    failed: int
    low: float
    high: float
    verdicts: Mapping[str, int]
    laws: Mapping[str, int]
    found_nooff: int
    symbolic: int
    timeouts: int
    constant: Interval | None
    r2_log: Interval | None
    error_in_range: Interval | None
    error_outside: Interval | None
    complexity: Interval | None
    cpu_s: float | None
    shape: str | None
    shape_count: int
    shapes: int


def law_rate(engine: str, searches: Sequence[Result]) -> LawRate:
    """Return the law rate of an engine from its searches of one row, failed ones included."""
    ok = [search for search in searches if search.ok]
    lawful = [search for search in ok if search.details["verdict"] == "law"]
    _, low, high = wilson(len(lawful), len(searches))
    # Ties go to the shape that sorts first, so that the order of results does not matter.
    counts = Counter(search.details["shape"] for search in ok)
    shape = min(counts, key=lambda name: (-counts[name], name)) if counts else None
    symbolic = Counter(search.details.get("symbolic") for search in ok)
    return LawRate(
        engine=engine,
        world=str(searches[0].case.law),
        found=len(lawful),
        strict=_strict(str(searches[0].case.law), lawful),
        total=len(searches),
        failed=len(searches) - len(ok),
        low=low,
        high=high,
        verdicts=dict(sorted(Counter(search.details["verdict"] for search in ok).items())),
        laws=dict(Counter(map(_law_of, ok)).most_common()),
        found_nooff=sum(bool(search.details.get("law_nooff")) for search in ok),
        symbolic=symbolic["yes"],
        timeouts=symbolic["timeout"],
        constant=_over_searches(lawful, "constant"),
        r2_log=_over_searches(ok, "r2_log"),
        error_in_range=_over_searches(ok, "error_in_range", missing=math.inf),
        error_outside=_over_searches(ok, "error_outside", missing=math.inf),
        complexity=_over_searches(ok, "complexity"),
        cpu_s=median(search.cpu_s for search in ok) if ok else None,
        shape=shape,
        shape_count=counts[shape] if shape else 0,
        shapes=len(counts),
    )


def _strict(law: str, lawful: Sequence[Result]) -> int | None:
    """Count formulas that are the law with all exponents within :data:`STRICT` of its."""
    truth = laws.get(law).exponents
    if truth is None:
        return None
    found = 0
    for search in lawful:
        values = {name: search.value(f"exponent_{name}") for name in NAMES}
        found += all(v is not None and abs(v - truth[k]) <= STRICT for k, v in values.items())
    return found


def _law_of(search: Result) -> str:
    """Return the law that a search found: the world's own if it agrees with that."""
    if search.details["verdict"] == "law":
        return str(search.case.law)
    if "laws" not in search.details:  # scored before formulas were compared with every law
        return NOT_COMPARED
    return " or ".join(search.details["laws"]) or NO_LAW


def _over_searches(
    searches: Sequence[Result], metric: str, missing: float | None = None
) -> Interval | None:
    """Return the median of a metric over searches and its bootstrap interval.

    A search without the metric counts as ``missing``, or is left out. The median of too many
    missing ones is None.
    """
    values_or_none = (search.value(metric) for search in searches)
    filled = (missing if value is None else value for value in values_or_none)
    values = sorted(value for value in filled if value is not None)
    if not values:
        return None
    draws = np.random.default_rng(0).choice(values, (N_BOOT, len(values)))
    with np.errstate(invalid="ignore"):  # a median between two infinite values
        medians = np.nan_to_num(np.median(draws, axis=1), nan=math.inf, posinf=math.inf)
    middle = float(np.median(values))
    low, high = np.quantile(medians, [0.025, 0.975], method="nearest")
    return Interval(middle, float(low), float(high)) if math.isfinite(middle) else None
