"""Verdicts on tables and figures: reproduced, contradicted, inconclusive or not run.

A check is one published number, or one claim at one setting of our runs, judged over seeds as in
reports (:mod:`benchmarks.published.compare`). Where several runs judge one check and do not agree,
it is inconclusive. A table or figure is

- ``contradicted``, if more of its judged checks are than chance would let: a 95% interval lies on
  the wrong side of no difference in one of 40, and so many would be in fewer than 5 of 100 papers
  (a binomial test, which takes checks for independent);
- ``reproduced``, if it is not and at least half of the judged checks agree with the paper;
- ``inconclusive``, if some check is judged and neither holds, or if its entry says that the checks
  do not answer it (``unsettled``), such as trainings that have not learned the task yet;
- ``not run``, if none is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy.stats import binom

from benchmarks.coverage.entries import Claim, Entry
from benchmarks.published.compare import (
    ABSOLUTE,
    CONTRADICTED,
    EQUIVALENT,
    INCONCLUSIVE,
    NOT_RUN,
    SAME_DIRECTION,
)
from benchmarks.rates import SWEPT, best
from benchmarks.study import Judged
from orbits.runs.result import Result
from orbits.runs.statistics import paired
from orbits.runs.study import Study

REPRODUCED = "reproduced"
STATES = (REPRODUCED, CONTRADICTED, INCONCLUSIVE, NOT_RUN)
CHANCE, LEVEL = 0.025, 0.05
"""Probability that chance contradicts one check, and level of the test on the number of these."""

Outcomes = Mapping[tuple[Any, ...], str]
"""The outcome of each check."""


@dataclass(frozen=True)
class Source:
    """A results folder.

    Attributes:
        name: Its name.
        study: Its study.
        config: The settings of its run.
        results: Its results.
    """

    name: str
    study: Study
    config: Mapping[str, Any]
    results: Sequence[Result]


@dataclass(frozen=True)
class Answer:
    """The verdict on a table or figure.

    Attributes:
        state: One of :data:`STATES`.
        counts: Number of checks by outcome.
        runs: Names of the runs that judged a check.
    """

    state: str
    counts: Mapping[str, int]
    runs: tuple[str, ...] = ()


def answers(entries: Mapping[str, Entry], sources: Sequence[Source]) -> dict[str, Answer]:
    """Return the verdict of results on each entry, by its name."""
    of_tables = {
        source.name: source.study.verdicts(source.results, source.config)
        for source in sources
        if isinstance(source.study, Judged)
    }
    found = {}
    for name, entry in entries.items():
        asked = entries[entry.same_as] if entry.same_as else entry
        by_run: dict[str, Outcomes] = {}
        for source in sources:
            judged: dict[tuple[Any, ...], str] = {}
            for table in asked.tables:
                for verdict in of_tables.get(source.name, {}).get(table, ()):
                    asks = asked.asks(verdict.row, verdict.metric)
                    if asks and verdict.reason != ABSOLUTE:
                        judged[table, verdict.row, verdict.metric] = verdict.outcome
            for number, claim in enumerate(asked.claims):
                if claim.study == source.study.name:
                    checks = claim_outcomes(claim, source.results)
                    judged |= {(number, *key): outcome for key, outcome in checks.items()}
            if judged:
                by_run[source.name] = judged
        answer = combined(by_run)
        if asked.unsettled and answer.state != NOT_RUN:
            answer = replace(answer, state=INCONCLUSIVE)
        found[name] = answer
    return found


def combined(by_run: Mapping[str, Outcomes]) -> Answer:
    """Return the answer to the checks of several runs."""
    checks: dict[tuple[Any, ...], set[str]] = {}
    for outcomes in by_run.values():
        for key, outcome in outcomes.items():
            checks.setdefault(key, set()).add(outcome)
    counts = Counter(_agreed(outcomes - {NOT_RUN}) for outcomes in checks.values())
    runs = tuple(
        name for name, outcomes in by_run.items() if any(x != NOT_RUN for x in outcomes.values())
    )
    return Answer(state(counts), counts, runs)


def state(counts: Mapping[str, int]) -> str:
    """Return the state of a table whose checks have so many of each outcome."""
    agree = counts.get(SAME_DIRECTION, 0) + counts.get(EQUIVALENT, 0)
    against = counts.get(CONTRADICTED, 0)
    judged = agree + against + counts.get(INCONCLUSIVE, 0)
    if not judged:
        return NOT_RUN
    if against and binom.sf(against - 1, judged, CHANCE) < LEVEL:
        return CONTRADICTED
    return REPRODUCED if 2 * agree >= judged else INCONCLUSIVE


def claim_outcomes(claim: Claim, results: Iterable[Result]) -> dict[tuple[Any, ...], str]:
    """Return the outcome of a claim at each setting of a run, by setting and metric.

    In a sweep each row has the rate and decay of its best validation.
    """
    rows: dict[tuple[Any, ...], dict[str, list[Result]]] = {}
    for result in best(x for x in results if _fits(claim, x)):
        apart = {*SWEPT, *claim.across}
        setting = tuple((k, str(v)) for k, v in result.case.setting.items() if k not in apart)
        key = (result.case.law, result.case.protocol, *setting)
        rows.setdefault(key, {}).setdefault(result.case.variant, []).append(result)
    outcomes = {}
    for key, variants in rows.items():
        if {claim.row, claim.against} <= variants.keys():
            one, other = variants[claim.row], variants[claim.against]
            names = dict.fromkeys(name for result in one for name in result.metrics)
            for name in names:
                if claim.metric in (name, name.partition("@")[0]):
                    outcomes[*key, name] = _outcome(claim, _seeds(one, name), _seeds(other, name))
    return outcomes


def _fits(claim: Claim, result: Result) -> bool:
    case = result.case
    return (
        (case.study, case.kind, case.arm) == (claim.study, claim.kind, claim.arm)
        and case.variant in (claim.row, claim.against)
        and all(case.get(name) == value for name, value in claim.where.items())
        and not any(case.get(name) in _each(value) for name, value in claim.without.items())
    )


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _seeds(results: Iterable[Result], metric: str) -> dict[int | None, float]:
    """Return a metric by seed; refuse two of one seed, of which a claim would take the last."""
    found: dict[int | None, float] = {}
    for each in results:
        if metric in each.metrics:
            if each.case.seed in found:
                name = f"{each.case.variant}, seed {each.case.seed}"
                raise ValueError(f"{name}: {metric} of several settings; choose one with where")
            found[each.case.seed] = each.metrics[metric].value
    return found


def _outcome(
    claim: Claim, one: Mapping[int | None, float], other: Mapping[int | None, float]
) -> str:
    """Judge one claim by the differences of seeds that two rows share."""
    found = paired(one, other)
    if found is None:
        return NOT_RUN
    _, low, high = found.difference
    if claim.margin is not None:
        if -claim.margin <= low and high <= claim.margin:
            return EQUIVALENT
        return CONTRADICTED if low > claim.margin or high < -claim.margin else INCONCLUSIVE
    if low <= 0 <= high:
        return INCONCLUSIVE
    return SAME_DIRECTION if (low > 0) == (claim.expect == "higher") else CONTRADICTED


def _agreed(outcomes: set[str]) -> str:
    """Return the joint outcome of runs: nothing, one outcome, or that they do not agree."""
    if not outcomes:
        return NOT_RUN
    return next(iter(outcomes)) if len(outcomes) == 1 else INCONCLUSIVE
