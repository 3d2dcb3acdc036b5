"""Sentences: whether the law is inferred, what memory alone does, and whether the step tells it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from benchmarks.worlds import exchange_report
from benchmarks.worlds.names import (
    ALONE,
    CEILING,
    FILTER,
    HELD_OUT,
    MEMORIES,
    MIXTURE,
    NEAREST_MEAN,
    PIECES,
    PLACES,
    STEPS,
    TABLE,
    TABLE_WITH_FAMILIES,
    TELLING,
    TOLD,
    TRAINED,
    UNTRAINED,
    WITH_FAMILIES,
)
from benchmarks.worlds.scores import (
    Row,
    families,
    find,
    has_no_law,
    leak,
    prompts,
    rows,
    shallower,
    worlds,
)
from orbits.runs import trainings
from orbits.runs.result import Result
from orbits.runs.study import Study

LITTLE, NEARLY_ALL = 0.2, 0.8
"""S up to which continuations are said to follow one law, and from which to follow each world's.

Following is no inferring: a table of orbits, which knows no law, follows too."""
OTHERS = {
    CEILING: "an observer who fits orbits under every law",
    TABLE: "a table of training orbits, which knows no law,",
}
"""References that stand beside a model in its verdict, in words."""
LEAKS = 0.1
"""Change of an exponent up to which half the time step hardly moves it."""


def sentences(study: Study, results: Sequence[Result]) -> list[str]:
    """Return the verdict, then what it must be read with; nothing without a model's answer."""
    found = rows(results)
    longest = max(prompts(found), default=0)
    models = [row for row in found if row.is_model and row.metrics("S", longest)]
    if not models:
        return []
    models.sort(key=lambda row: row.value("S", longest) or 0.0, reverse=True)
    lawful = [row for row in models if not has_no_law(row, found, longest)]
    first = (lawful or models)[0]
    said = [_verdict(row, found, longest, others=row is first) for row in models]
    said += time_step(results)
    said += _meaning(lawful, found, longest)
    said += [line for row in lawful for line in _growth(row, found)]
    said += [line for row in lawful for line in _held_out(row, longest, found)]
    said += [line for row in lawful for line in leak_test(row, found)]
    said += _read_out(models, found, longest)
    said += _steps(results)
    said += [line for family in families(results) for line in _family(family, results)]
    return said + exchange_report.sentences(results)


def _family(family: str, results: Sequence[Result]) -> list[str]:
    """Say how models go on in worlds of another family, and what that is worth."""
    found = rows(results, family)
    longest = max(prompts(found), default=0)
    models = [row for row in found if row.arm in (MIXTURE, WITH_FAMILIES)]
    models = [row for row in models if row.metrics("S", longest)]
    lawful = [row for row in models if not has_no_law(row, found, longest)]
    said = []
    for row in models:
        others = row is (lawful or models)[0]
        verdict = _verdict(row, found, longest, row.name, others=others)
        said.append(f"Worlds of {family}: {verdict}")
        if row in lawful:
            said += leak_test(row, found, row.name)
    names = (TABLE, TABLE_WITH_FAMILIES, ALONE, FILTER, UNTRAINED)
    parts = _shares(names, found, longest)
    if models and parts:
        said.append(f"Worlds of {family}, S of the controls: {'; '.join(parts)}.")
    return said


def _shares(names: Sequence[str], found: Sequence[Row], longest: int) -> list[str]:
    return [
        f"{row.name} {row.said('S', longest)}"
        for name in names
        if (row := find(found, name)) is not None and row.metrics("S", longest)
    ]


def _verdict(row: Row, found: Sequence[Row], longest: int, name: str = "", *, others: bool) -> str:
    """Say how much of a change of the law a model follows, and, of the first, who else does."""
    value, name = row.value("S", longest), name or row.variant
    assert value is not None
    if has_no_law(row, found, longest):
        return (
            f"{name} goes on by no power law of an attraction, so its S says "
            f"nothing: {row.said('S', longest)} after {longest} steps."
        )
    if value <= -LITTLE:
        does = "goes against a change of the prompt's law"
    elif value < LITTLE:
        does = "follows nearly one law in all worlds"
    elif value < NEARLY_ALL:
        does = "follows part of a change of the prompt's law"
    else:
        does = "follows the law of its prompt"
    said = [f"{name} {does}: S = {row.said('S', longest)} after {longest} steps (1: all, 0: none)"]
    if (own := shallower(row, found, longest)) is not None:
        said.append(
            f"all its laws, r^{own[0]:.2f} to r^{own[1]:.2f}, are shallower than these worlds'"
        )
    for other, who in OTHERS.items() if others else ():
        beside = find(found, other)
        if beside is not None and beside.metrics("S", longest):
            said.append(f"{who} has {beside.said('S', longest)}")
    return f"{'; '.join(said)}."


def _meaning(models: Sequence[Row], found: Sequence[Row], longest: int) -> list[str]:
    """Say what S is worth: what a table of orbits has, then the other controls."""
    said = []
    table = find(found, TABLE)
    best = max(((row.value("S", longest) or 0.0, row.variant) for row in models), default=None)
    if best is not None and table is not None and (own := table.value("S", longest)) is not None:
        if own >= best[0]:
            line = "No model has more S than a table of training orbits, so S does not tell an "
            line += "inferred law from remembered orbits"
        else:
            line = f"{best[1]} has {best[0] - own:.2f} more S than a table of training orbits"
        said += [f"{line}.", *_memory(models, found, longest)]
    parts = _shares((NEAREST_MEAN, PIECES, TOLD, ALONE, FILTER, UNTRAINED), found, longest)
    return [*said, f"S of the other controls: {'; '.join(parts)}."] if parts else said


def _memory(models: Sequence[Row], found: Sequence[Row], longest: int) -> list[str]:
    """Say by what memories and models differ: laws that none remembers, and where orbits end."""
    parts = []
    memories = (find(found, name) for name in MEMORIES)
    for row in (*memories, *models, find(found, CEILING)):
        if row is None or (error := row.value(f"error@{HELD_OUT}", longest)) is None:
            continue
        biases = [row.value(f"bias@{world}", longest) for world in worlds(found, "bias")]
        there = [abs(each) for each in biases if each is not None]
        bias = sum(there) / len(there)
        name = row.variant if row.is_model else row.name
        parts.append(f"{name} {bias:.2f} and {error:.3f} AU")
    if not parts:
        return []
    return [
        "At laws held out of the training, mean size of the bias, and median error "
        f"where continuations end: {'; '.join(parts)}."
    ]


def _growth(row: Row, found: Sequence[Row]) -> list[str]:
    lengths = [steps for steps in prompts(found) if row.metrics("S", steps)]
    if len(lengths) < 2:
        return []
    each = ", ".join(f"{row.value('S', steps):z.2f} after {steps}" for steps in lengths)
    return [f"{row.variant}: S {each} steps of prompt."]


def _held_out(row: Row, longest: int, found: Sequence[Row]) -> list[str]:
    parts = [
        f"{row.said(f'bias@{world}', longest)} at {world}"
        for world in worlds(found, "bias")
        if row.metrics(f"bias@{world}", longest)
    ]
    if not parts:
        return []
    return [
        f"{row.variant} at laws held out of the training is off the line through the others by "
        f"{', '.join(parts)}."
    ]


def time_step(results: Sequence[Result]) -> list[str]:
    """Say where the time step tells the law."""
    if any(x.case.protocol == TELLING for x in results):
        return ["The time step tells the law: S may count what is read from it, too."]
    return []


def leak_test(row: Row, found: Sequence[Row], name: str = "") -> list[str]:
    """Say how half the time step moves the exponents of a row, and what that means.

    Args:
        row: Who was asked.
        found: All rows, the truth among them.
        name: Takes the place of the row's variant.

    Returns:
        A sentence; none where that was not asked.
    """
    if not (moved := leak(row, found)):
        return []
    value, low, high = trainings.together(moved)
    if low > 0 and value > LEAKS:
        means = "towards shallower laws, as if it read the law off the rate of sampling"
    elif high > LEAKS:
        means = "so reading the law off the rate of sampling is neither shown nor excluded"
    elif high < 0:
        means = "towards steeper laws, which reading the law off the rate of sampling would not do"
    else:
        means = "not towards shallower laws, as reading the law off the rate of sampling would"
    return [
        f"Leak test: half the time step moves the exponents of {name or row.variant} by "
        f"{trainings.words(moved)}, {means}."
    ]


def _read_out(models: Sequence[Row], found: Sequence[Row], longest: int) -> list[str]:
    """Say how well a read-out of the state knows the law, beside one that sees no model."""
    metrics = f"log_score@{TRAINED}", f"log_score@{HELD_OUT}"
    scored, explained = [], []
    for row in (*models, *(find(found, x) for x in (TOLD, UNTRAINED, PLACES, CEILING))):
        if row is None or not row.metrics(metrics[0], longest):
            continue
        name = row.variant if row.is_model else row.name
        values = [row.value(metric, longest) for metric in metrics]
        scored.append(f"{name} {' and '.join(f'{x:z.2f}' for x in values if x is not None)}")
        layers, shares = row.read(longest)
        if shares:
            where = f" ({_once(layers)})" if layers else ""
            explained.append(f"{name} {mean(x.value for x in shares):z.2f}{where}")
    said = []
    if explained:
        said.append(
            f"R² of the exponent by ridge regression after {longest} steps, in the layer that "
            f"tells most: {'; '.join(explained)}."
        )
    if scored:
        said.append(
            f"Log score of the law read-out after {longest} steps, at laws of the training and "
            f"held out, nats: {'; '.join(scored)}."
        )
    return said


def _steps(results: Sequence[Result]) -> list[str]:
    """Say how much of a law single steps follow; nothing where none was asked."""
    found = rows(results, kinds=(STEPS,))
    parts = [f"{row.name} {row.said('S', 0)}" for row in found]
    return [f"S of single steps: {'; '.join(parts)}."] if parts else []


def _once(layers: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(layers))
