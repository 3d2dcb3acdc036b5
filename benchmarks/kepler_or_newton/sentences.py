"""Sentences: whether the published transition is seen, the laws of continuations, and controls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from benchmarks.kepler_or_newton.beside import CONTEXT, NOISE, verdicts
from benchmarks.kepler_or_newton.points import ALL, PUBLISHED, observer_name
from benchmarks.kepler_or_newton.scores import (
    FORCE,
    SCORES,
    SHAPE,
    BySeed,
    Carried,
    along,
    by_attention,
    carried,
    twin,
)
from benchmarks.published import compare
from orbits.runs.result import Result
from orbits.runs.statistics import MINIMUM_SEEDS, over_seeds
from orbits.runs.statistics import compare as compare_pairs
from orbits.runs.study import Study
from worldmodel.controls.names import IN_BINS, TABLE

RECIPE = f"least squares and noise of {PUBLISHED['noise']} AU"


def sentences(study: Study, results: Sequence[Result]) -> list[str]:
    """Return the transition, then paths, controls, heads, noise and attention."""
    found = carried(results)
    windows = along(found, "window")
    said = []
    if len(windows) > 1:
        said += [*_transition(windows, found), *_counts(results, CONTEXT, "context length")]
        said += _paths(windows)
    recipe = along(found, "window", **PUBLISHED)
    if len(recipe) > 1:
        said += [f"By the published recipe, {RECIPE}: {x}" for x in _transition(recipe, found)]
        said += [f"By that recipe: {x}" for x in _paths(recipe)]
        said += _observers(recipe, found)
    said += _places(found)
    heads = along(found, "predicts")
    if len(heads) > 1:
        said.append(_listed("By head", heads))
    noises = along(found, "noise")
    if len(noises) > 1:
        named = {f"{x:g} AU": each for x, each in noises.items()}
        said += [_listed("By noise on the context", named), *_counts(results, NOISE, "noise")]
    return [*said, *_references(found), *_attentions(found), *_moves(found)]


def _transition(windows: dict[object, Carried], found: Sequence[Carried]) -> list[str]:
    """Say whether the force grows and the shape fades as the context shrinks, and in whom."""
    (shortest, short), (widest, whole) = next(iter(windows.items())), list(windows.items())[-1]
    rows = "all rows" if widest == ALL else f"a window of {widest}"
    signs = [_sign(whole.score(metrics), short.score(metrics)) for metrics in SCORES.values()]
    said = [
        f"From {rows} to a window of {shortest}, mean R² of read-outs goes for "
        f"{_moved(whole, short)}. Of the published transition, more force and less shape where the "
        f"context is short, this says: {judged(*signs)}."
    ]
    before, after = (twin(found, each.point) for each in (whole, short))
    if not before or not after or not before.score(FORCE) or not after.score(FORCE):
        return said
    gains = [
        f"{what} by {_mean(_less(whole, before, metrics), '+z.2f')} in {rows} and by "
        f"{_mean(_less(short, after, metrics), '+z.2f')} in the window"
        for what, metrics in SCORES.items()
    ]
    return [
        *said,
        f"With random weights it goes for {_moved(before, after)}: what moves there is no learnt "
        f"law. Training changes {' and '.join(gains)}.",
    ]


def _moved(before: Carried, after: Carried) -> str:
    """Say how both scores go from one model to another."""
    parts = []
    for what, metrics in SCORES.items():
        old, new = before.score(metrics), after.score(metrics)
        parts.append(f"{what} from {_mean(old)} to {_mean(new)}{_change(old, new)}")
    return " and for ".join(parts)


def _less(one: Carried, another: Carried, metrics: Sequence[str]) -> BySeed:
    """Return the excess of a score of some models over that of others, by seed."""
    own, other = one.score(metrics), another.score(metrics)
    return {seed: own[seed] - other[seed] for seed in own if seed in other}


def judged(force: int | None, shape: int | None) -> str:
    """Return the verdict on the transition as a whole from the signs of two differences.

    Args:
        force: Change of the force, short less whole context: 1, -1, or 0 where the interval holds
            0; None where there is no interval.
        shape: Change of the shape.
    """
    if force is None or shape is None:
        return compare.NOT_RUN
    if (force, shape) == (1, -1):
        return compare.SAME_DIRECTION
    if force < 0 or shape > 0:
        return compare.CONTRADICTED
    return compare.INCONCLUSIVE


def _sign(before: BySeed, after: BySeed) -> int | None:
    differences = _differences(before, after)
    if len(differences) < MINIMUM_SEEDS:
        return None
    _, low, high = over_seeds(differences)
    return 0 if low <= 0 <= high else (1 if low > 0 else -1)


def _change(before: BySeed, after: BySeed) -> str:
    differences = _differences(before, after)
    if len(differences) < MINIMUM_SEEDS:
        return ""
    middle, low, high = over_seeds(differences)
    return f" ({middle:+.2f} [{low:+.2f}, {high:+.2f}])"


def _differences(before: BySeed, after: BySeed) -> list[float]:
    return [after[seed] - before[seed] for seed in after if seed in before]


def _counts(results: Sequence[Result], table: str, knob: str) -> list[str]:
    found = verdicts(results, table)
    once = ", both components of a vector counted as one" * (table == CONTEXT)
    return [f"Of {len(found)} published numbers by {knob}{once}: {compare.counts(found)}."]


def _paths(windows: dict[object, Carried]) -> list[str]:
    """Say which law continuations obey, by window, inside and outside the training box."""
    parts = []
    for each in windows.values():
        inside, closer = (each.values("exponent_within", x) for x in ("inside", "closer"))
        if inside and closer:
            where = each.point.context if each.point else "-"
            parts.append(f"{where} r^{_mean(inside)}, closer to the star r^{_mean(closer)}")
    return [f"Continuations obey: {'; '.join(parts)}."] if parts else []


def _observers(windows: dict[object, Carried], found: Sequence[Carried]) -> list[str]:
    """Say how who holds the law goes on, who sees no more than the model of a short window."""
    named = {each.name: each for each in found if each.point is None}
    parts = []
    for each in windows.values():
        assert each.point is not None
        name = observer_name(*each.point.view)
        if each.point.window and (observer := named.get(name)):
            his, its = (
                [_mean(who.values("exponent_within", x)) for x in ("inside", "closer")]
                for who in (observer, each)
            )
            parts.append(
                f"{each.point.context}, by r^{his[0]} (the model r^{its[0]}), closer to the star "
                f"by r^{his[1]} (r^{its[1]}), "
                f"{_mean(observer.values('rollout_error'), 'z.3f')} AU off in the box "
                f"({_mean(each.values('rollout_error'), 'z.3f')})"
            )
    return [
        f"An observer who holds orbits of Newton's law alone, and sees no more than the model, "
        f"goes on with {part}."
        for part in parts
    ]


def _places(found: Sequence[Carried]) -> list[str]:
    """Say which scores places without a model reach."""
    parts = [
        f"{each.name} {_mean(force)} and {_mean(each.score(SHAPE))}"
        for each in found
        if each.point is None and (force := each.score(FORCE))
    ]
    return [f"Without a model, R² of force and shape: {'; '.join(parts)}."] if parts else []


def _references(found: Sequence[Carried]) -> list[str]:
    """Say which exponents the truth in bins and a table of orbits have."""
    parts = []
    for each in found:
        inside, closer = (each.values("exponent_within", x) for x in ("inside", "closer"))
        if each.name in (IN_BINS, TABLE) and inside and closer:
            parts.append(f"{each.name} r^{_mean(inside)} and r^{_mean(closer)}")
    return [f"Inside and closer to the star, without a model: {'; '.join(parts)}."] if parts else []


def _attentions(found: Sequence[Carried]) -> list[str]:
    """Say for each attention how its scores move from all rows to the shortest window."""
    parts = []
    for name, both in by_attention(found).items():
        scores = ", ".join(
            f"{'all rows' if window == ALL else f'window {window}'} {_mean(each.score(FORCE))} and "
            f"{_mean(each.score(SHAPE))}"
            for window, each in both.items()
            if each.score(FORCE) and each.score(SHAPE)
        )
        if scores:
            parts.append(f"{name}: {scores}")
    return [f"R² of force and shape by attention: {'; '.join(parts)}."] if len(parts) > 1 else []


def _moves(found: Sequence[Carried]) -> list[str]:
    """Say which attentions' scores the shortest window moves further than another's, by seed."""
    both = {
        name: (windows.pop(ALL), *windows.values())
        for name, each in by_attention(found).items()
        if len(windows := dict(each)) == 2
    }
    said = []
    for what, metrics in SCORES.items():
        moved = {name: _less(short, whole, metrics) for name, (whole, short) in both.items()}
        pairs = compare_pairs({(a, b): (moved[a], moved[b]) for a, b in combinations(moved, 2)})
        if not pairs:
            continue
        apart = [
            f"{a}'s less {b}'s is {x.difference.value:z.2f} [{x.difference.low:z.2f}, "
            f"{x.difference.high:z.2f}] ({'claimed' if x.differs else 'alone'})"
            for (a, b), x in pairs.items()
            if x.difference.low > 0 or x.difference.high < 0
        ]
        each = ", ".join(f"{_mean(values)} ({name})" for name, values in moved.items())
        said.append(
            f"The window moves {what} by {each}: "
            f"{'; '.join(apart) or 'that it moves one further than another is not shown'}."
        )
    return said


def _listed(what: str, named: dict) -> str:
    """Say error, exponent and scores of several models."""
    parts = [
        f"{name}: rollout error {_mean(errors, 'z.3f')} AU, r^{_mean(exponents)}, force "
        f"{_mean(each.score(FORCE))}, shape {_mean(each.score(SHAPE))}"
        for name, each in named.items()
        if (errors := each.values("rollout_error"))
        and (exponents := each.values("exponent_within"))
        and each.score(FORCE)
    ]
    return f"{what}: {'; '.join(parts)}."


def _mean(values: BySeed, form: str = "z.2f") -> str:
    return format(fmean(values.values()), form) if values else "-"
