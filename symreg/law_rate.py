"""What the searches of one engine found, from their result lines.

Intervals over searches are 95% percentile bootstraps of the median; they say how the engine varies
on these predictions, not how the model varies between trainings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from symreg.exponents import Interval

N_BOOT = 2000
Z95 = 1.959963984540054  # 97.5% quantile of the normal distribution
NO_LAW, NOT_COMPARED = "none", "not compared"
"""A formula that is no law of the registry; one that was scored before this was looked at."""


@dataclass(frozen=True)
class LawRate:
    """What one engine found for one row. Each interval is (median, low, high) over searches.

    Attributes:
        engine: Engine and version.
        world: The law that rules where the predictions come from.
        found: Number of searches whose verdict is ``law``.
        total: Number of searches, failed ones included.
        failed: Number of searches that failed.
        low: Lower end of the Wilson 95% interval of found / total.
        high: Upper end of it.
        verdicts: How many searches ended in each verdict.
        laws: How many searches found each law of the registry, whatever the law of the world;
            :data:`NO_LAW` for formulas that are none of them.
        found_nooff: Searches that found the law once an additive constant is dropped.
        symbolic: How many formulas equal the law symbolically, up to the constant.
        timeouts: How many symbolic comparisons ran out of time, which is not a no.
        constant: Constant among the laws found.
        constant_error: Its relative error.
        r2_log: R2 of ln formula against ln predictions.
        error_in_range: Relative error of the formula to the true law on held-out points.
        error_outside: The same outside the range of the points.
        complexity: Nodes of the formulas.
        cpu_s: CPU seconds of a search and its scoring, in the median.
        shape: The most frequent shape of the formulas.
        shape_count: How many formulas have it.
        shapes: How many different shapes there are.
    """

    engine: str
    world: str
    found: int
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
    constant_error: Interval | None
    r2_log: Interval | None
    error_in_range: Interval | None
    error_outside: Interval | None
    complexity: Interval | None
    cpu_s: float | None
    shape: str | None
    shape_count: int
    shapes: int


def wilson(successes: int, total: int) -> tuple[float, float]:
    """Return the Wilson 95% interval of a rate (Wilson 1927).

    Raises:
        ValueError: Not ``0 <= successes <= total`` with a positive total.
    """
    if not 0 <= successes <= total or total < 1:
        raise ValueError(f"no rate: {successes} of {total}")
    rate, z2 = successes / total, Z95**2
    centre = (rate + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 / (1 + z2 / total) * math.sqrt(rate * (1 - rate) / total + z2 / (4 * total**2))
    # At a rate of 0 or 1 the end is exactly that, which rounding would miss by 1e-17.
    low = 0.0 if successes == 0 else centre - half
    return low, 1.0 if successes == total else centre + half


def law_rate(engine: str, lines: Sequence[Mapping[str, Any]]) -> LawRate:
    """Return what one engine found, from its law lines of one row, failed ones included."""
    ok = [line for line in lines if line["status"] == "ok"]
    scores = [line["metrics"] for line in ok]
    found = [score for score in scores if score["verdict"] == "law"]
    low, high = wilson(len(found), len(lines))
    # Ties go to the shape that sorts first, so that the order of lines does not matter.
    counts = Counter(score["shape"] for score in scores)
    shape = min(counts, key=lambda name: (-counts[name], name)) if counts else None
    times = [line["cpu_s"] for line in ok if "cpu_s" in line]
    symbolic = Counter(score.get("symbolic") for score in scores)
    return LawRate(
        engine=engine,
        world=str(lines[0]["task"]),
        found=len(found),
        total=len(lines),
        failed=len(lines) - len(scores),
        low=low,
        high=high,
        verdicts=dict(sorted(Counter(score["verdict"] for score in scores).items())),
        laws=dict(Counter(_law_of(line) for line in ok).most_common()),
        found_nooff=sum(bool(score.get("law_nooff")) for score in scores),
        symbolic=symbolic["yes"],
        timeouts=symbolic["timeout"],
        constant=_over_searches(found, "constant"),
        constant_error=_over_searches(found, "constant_relative_error"),
        r2_log=_over_searches(scores, "r2_log"),
        error_in_range=_over_searches(scores, "error_in_range", missing=math.inf),
        error_outside=_over_searches(scores, "error_outside", missing=math.inf),
        complexity=_over_searches(scores, "complexity"),
        cpu_s=median(times) if times else None,
        shape=shape,
        shape_count=counts[shape] if shape else 0,
        shapes=len(counts),
    )


def _law_of(line: Mapping[str, Any]) -> str:
    """Return the law that a search found: the world's own if it agrees with that."""
    score = line["metrics"]
    if score["verdict"] == "law":
        return str(line["task"])
    if "laws" not in score:  # scored before formulas were compared with every law
        return NOT_COMPARED
    return " or ".join(score["laws"]) or NO_LAW


def _over_searches(
    scores: Sequence[Mapping[str, Any]], name: str, missing: float | None = None
) -> Interval | None:
    """Return the median of a metric over searches and its bootstrap interval.

    A score without the metric counts as ``missing``; without that, it is left out. The median
    of too many missing ones is None.
    """
    known = (score.get(name, missing) for score in scores)
    filled = (missing if value is None else value for value in known)
    values = sorted(value for value in filled if value is not None)
    if not values:
        return None
    draws = np.random.default_rng(0).choice(values, (N_BOOT, len(values)))
    with np.errstate(invalid="ignore"):  # a median between two infinite values
        medians = np.nan_to_num(np.median(draws, axis=1), nan=math.inf, posinf=math.inf)
    middle = float(np.median(values))
    low, high = np.quantile(medians, [0.025, 0.975], method="nearest")
    return (middle, float(low), float(high)) if math.isfinite(middle) else None
