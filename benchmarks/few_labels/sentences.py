"""Sentences: backbones that fail, remedies, and the sources of the variance."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean

from benchmarks.few_labels.correlations import correlations
from benchmarks.few_labels.scores import (
    ARMS,
    FAILED,
    NO_CHOICE,
    STOPPED,
    WITH,
    Group,
    controls,
    groups,
    in_words,
    points,
    rectangle,
)
from benchmarks.few_labels.variance import shares
from orbits.runs.result import Result
from orbits.runs.statistics import holm
from orbits.runs.study import Study


def sentences(study: Study, results: Sequence[Result]) -> list[str]:
    """Return the backbones that fail, and the remedies, for each rate and number of steps."""
    found = groups(results)
    said = _verdict(found, results)
    for group in found:
        if group.arm not in (WITH, NO_CHOICE) or not group.means():
            continue
        said.append(f"{_failures(group)} {_division(group)}".rstrip())
        if group.failed():
            said.append(_stopping(group))
        said += [_other_arm(group, other) for other in found if _is_other_arm(group, other)]
    return [*said, *_strongest(found, results), *_baselines(results)]


def _verdict(found: Sequence[Group], results: Sequence[Result]) -> list[str]:
    """Count the backbones that fail, whatever the rate and steps, by attention and arm."""
    counts: dict[str, list[int]] = {}
    for group in found:
        arm = "" if group.arm in (WITH, NO_CHOICE) else f" with {ARMS[group.arm]} in fine-tuning"
        count = counts.setdefault(f"{group.variant}{arm}", [0, 0])
        count[0] += len(group.failed())
        count[1] += len(group.means())
    each = [f"{name} {failed} of {total}" for name, (failed, total) in counts.items() if total]
    if not each:
        return []
    scores = {
        name: fmean(value for x in sets.values() if (value := x.value("r2_log")) is not None)
        for name, sets in controls(results).items()
        if any(x.value("r2_log") is not None for x in sets.values())
    }
    best = max(scores, key=scores.__getitem__, default="")
    beside = f"; without a backbone, {best} has R² {scores[best]:.2f}" if best else ""
    return [
        f"Backbones that fail on few labels (mean R² below {FAILED}), over all rates and numbers "
        f"of steps: {', '.join(each)}{beside}."
    ]


def _failures(group: Group) -> str:
    """Say which backbones fail, and how the scores of all trainings lie."""
    failed, means = group.failed(), group.means()
    scores = sorted(x for sets in group.scores().values() for x in sets.values())
    said = f"{group.name}: {len(failed)} of {len(means)} backbones fail (mean R² below {FAILED})"
    said += f", {_seeds(failed)}" if failed else ""
    said += f". R² of all {len(scores)} trainings: {points(scores)}"
    if len(scores) > 1:
        gap = max(itertools.pairwise(scores), key=lambda pair: pair[1] - pair[0])
        said += f"; the widest gap is between {points(gap, between=' and ')}"
    return f"{said}."


def _division(group: Group) -> str:
    """Say how the variance is divided."""
    if (found := shares(rectangle(group.scores()))) is None:
        return ""
    backbone, labels, _ = found.chance
    return (
        f"Of their variance (standard deviation {found.deviation:.2f}) {found.rows:.0%} lies "
        f"between backbones and {found.columns:.0%} between label sets; independent values have "
        f"{backbone:.0%} and {labels:.0%} on average."
    )


def _stopping(group: Group) -> str:
    """Say whether stopping at the best validation would have saved the backbones that fail."""
    before, after, steps = group.means(), group.means(STOPPED), group.scores(STOPPED, "step")
    there = [seed for seed in group.failed() if seed in after]
    saved = [seed for seed in there if after[seed] >= FAILED]
    each = "; ".join(
        f"seed {seed} from {before[seed]:z.2f} to {after[seed]:z.2f} at steps "
        f"{points(steps[seed].values(), '.0f')}"
        for seed in there
    )
    return (
        f"Stopped at the lowest validation loss, {len(saved)} of these {len(there)} do not fail: "
        f"{each}."
    )


def _is_other_arm(group: Group, other: Group) -> bool:
    same = (group.variant, group.lr, group.steps) == (other.variant, other.lr, other.steps)
    return same and group.arm == WITH and other.arm != WITH and bool(other.means())


def _other_arm(group: Group, other: Group) -> str:
    """Say how many backbones fail in another arm, and whether it mends those that fail."""
    before, after = group.means(), other.means()
    both = [seed for seed in group.failed() if seed in after]
    mended = [seed for seed in both if after[seed] >= FAILED]
    said = f"{other.name}: {len(other.failed())} of {len(after)} backbones fail"
    if both:
        each = "; ".join(f"seed {x} from {before[x]:z.2f} to {after[x]:z.2f}" for x in both)
        said += f"; of the {len(both)} that fail re-weighted it mends {len(mended)}: {each}"
    return f"{said}."


def _strongest(found: Sequence[Group], results: Sequence[Result]) -> list[str]:
    """Say which property orders the backbones best, and how little so few backbones show."""
    tested = correlations(found, results)
    if not tested:
        return []
    adjusted = holm([each.p for _, _, each in tested])
    place = max(range(len(tested)), key=lambda i: abs(tested[i][2].rho))
    group, measure, each = tested[place]
    return [
        f"Of {len(tested)} rank correlations between a measure of the backbone and its mean R², "
        f"the largest is that of {in_words(measure)} ({group.name}): {each.rho:.2f}, exact p "
        f"{each.p:.2g}, {adjusted[place]:.2g} after Holm's correction; {each.n} backbones."
    ]


def _baselines(results: Sequence[Result]) -> list[str]:
    """Say how well baselines without a world model do."""
    named = [
        f"{name} {points(x for x in values if x is not None)}"
        for name, sets in controls(results).items()
        if (values := [result.value("r2_log") for result in sets.values()])
    ]
    return [f"R² without a world model, same labels: {'; '.join(named)}."] if named else []


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
