"""Sentences of the report about predictions and formulas, and about the trainings behind them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.newton.control_names import TRAINED
from benchmarks.newton.exam_rows import Exam
from benchmarks.newton.worlds import as_number
from orbits import laws
from orbits.runs.cell import ORIGIN
from orbits.runs.naming import arm
from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from orbits.runs.table import interval
from symreg.leaderboard import NO_LAW, NOT_COMPARED, Row
from symreg.leaderboard.tables import seeds
from symreg.leaderboard.words import name

TRANSFERRED = ("pretrained on ", "trained on ")
"""Beginnings of the arms of models from other worlds."""
NEAR = 0.05
"""Largest distance from the law's exponents that a verdict calls near."""
HEAD = "head, "
"""Beginning of the arms of force heads that are trained in other worlds."""
BACKBONE = "pretrained/last.ckpt"
"""The role of a world model's checkpoint in a manifest; ``pretrained`` in migrated results."""


def answers(table: Sequence[Row], law: str) -> list[str]:
    """Describe the predictions and formulas of each trained row at its largest budget."""
    truth = laws.get(law)
    sentences = []
    transferred = [row for row in table if row.arm.startswith(TRANSFERRED)]
    for row in [*_largest_budget(table), *transferred]:
        if row.r2_log is None or row.constant is None:
            sentences.append(f"{name(row)}: failed.")
            continue
        fitted = ", ".join(f"{x} {_shown(value)}" for x, value in row.exponents.items())
        constant = f"constant {_shown(row.constant)}"
        if truth.exponents is not None:  # else there is no constant to compare with
            constant += f", {row.constant[0] / truth.magnitude(1, 1, 1) - 1:+.1%} from the law's"
        found = ", ".join(f"{entry.found} of {entry.total} by {entry.engine}" for entry in row.laws)
        dropped = f" on the {1 - row.dropped:.0%} that are positive" if row.dropped else ""
        sentences.append(
            f"{name(row)} ({seeds(row)}): R² of log F {row.r2_log:.3f}{dropped}; "
            f"exponents {fitted}; {constant}; in the box, formulas within 0.05 "
            f"of the law {found or 'not searched'}{_elsewhere(row)}."
        )
    return sentences


def hidden_masses(law: str) -> list[str]:
    """Say what can be known of the masses under a law whose motion does not show them."""
    if laws.get(law).shows_masses:
        return []
    return [
        f"Under {law} paths show m1 / m2 and neither mass: if both are doubled, so is the force, "
        "and no acceleration changes. Whoever sees orbits alone can at best answer the force of "
        "typical masses of this ratio, as the ceiling does; formulas on that are another law. "
        "Models that know the ratio alone are not models that missed the law."
    ]


def verdict(table: Sequence[Row], exam: Exam, law: str) -> list[str]:
    """Return the answer in a sentence: who has the law's exponents in the box, and who outside it.

    Right exponents in the box are no knowledge of a law, so that a run without an exam says that
    it cannot tell.
    """
    if (truth := laws.get(law).exponents) is None:
        return []
    rows = [row for row in _largest_budget(table) if row.r2_log is not None]
    if not rows:
        return []
    near = sum(
        all(abs(row.exponents[x][0] - truth[x]) <= NEAR for x in truth if x in row.exponents)
        for row in rows
    )
    inside = (
        f"In the training box {near} of {len(rows)} trained rows with {rows[0].labels} labels have "
        f"the law's exponents, within {NEAR:g}"
    )
    models = exam.models
    if not models or models[0].score is None:
        return [
            f"{inside}; there was no exam outside the box, and without one right exponents are no "
            "evidence of a law."
        ]
    best = f"{models[0].variant} ({arm(models[0].arm)})"
    found = f"{exam.where} the best model, {best}, errs "
    if any(row.law_exponents for row in models):
        kept = sum(row.passed for row in models)
        who = "No model keeps" if not kept else f"{kept} of {len(models)} models keep"
        found = f"{who} the law outside its training box: the best, {best}, errs "
    found += f"{_shown(models[0].score)} times as much as an orbit fit"
    for plain in exam.plain[:1]:
        assert plain.score is not None
        found += f"; a baseline without attention, {plain.variant}, {_shown(plain.score)} times"
        found += f" ({_beside(models[0].score, plain.score)})"
    return [f"{found}.", f"{inside}; there they are no evidence of a law."]


def _beside(one: Interval, other: Interval) -> str:
    """Say whether the intervals of two rows that share no trainings lie apart."""
    if one.high < other.low:
        return "which is more"
    return "which is less" if other.high < one.low else "no difference is shown"


def leaks(config: Mapping[str, Any]) -> list[str]:
    """Warn of leaked labels in a run that has them."""
    if not (leak := config.get("label_leak")):
        return []
    return [
        f"Beside the stated budgets, {leak} labels of every scored sequence were learnt from, as "
        "published: no model is asked about held-out sequences here, and no row compares with one "
        "of a run without this leak."
    ]


def heads_elsewhere(results: Iterable[Result]) -> list[str]:
    """Say with how many labels the heads that come from other worlds were trained there."""
    trained = [(result.case.arm, result.case.get("labels")) for result in results]
    return [
        f"Rows trained on {arm.removeprefix(HEAD)}: their heads learnt from {labels} labels there, "
        "and from none here."
        for arm, labels in dict.fromkeys(trained)
        if arm.startswith(HEAD)
    ]


def mixed_backbones(results: Iterable[Result]) -> list[str]:
    """Name world models of which the results hold several trainings, as reused results may.

    A world model is determined by its configuration and seed up to rounding, which changes with
    the code, the libraries and the machine.
    """
    backbones: dict[tuple[str, int | None], set[str]] = {}
    for result in results:
        inputs = result.manifest.get("inputs", {})
        roles = (BACKBONE + ORIGIN, BACKBONE, "pretrained")
        digest = next((inputs[role] for role in roles if role in inputs), None)
        if digest and result.case.arm in ("world model", "pretrained"):
            backbones.setdefault((result.case.variant, result.case.seed), set()).add(digest)
    models = dict.fromkeys(model for (model, _), digests in backbones.items() if len(digests) > 1)
    if not models:
        return []
    return [
        f"The results of {', '.join(models)} are of more than one training of the same "
        "configuration and seed: some were taken from another run (--reuse)."
    ]


def _shown(value: Sequence[float]) -> str:
    """Return (value, low, high) as text, of two trainings without the ends."""
    return interval(value if all(map(math.isfinite, value)) else value[:1]).words


def _elsewhere(row: Row) -> str:
    """Name the laws that were found and are not the law of the world."""
    wrong: Counter[str] = sum((Counter(entry.laws) for entry in row.laws), Counter())
    for right in (row.law, NO_LAW, NOT_COMPARED):
        del wrong[right]
    named = ", ".join(f"{law} by {count}" for law, count in wrong.items())
    return f", a law that does not rule here by others: {named}" if named else ""


def _largest_budget(table: Sequence[Row]) -> Sequence[Row]:
    trained = [row for row in table if row.arm in TRAINED]
    largest = max((as_number(row.labels) for row in trained), default=0.0)
    return [row for row in trained if as_number(row.labels) == largest]
