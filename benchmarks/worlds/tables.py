"""Tables: S by length of the prompt, exponents by world, laws held out, and the law read-out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeVar

from benchmarks.worlds import exchange_report
from benchmarks.worlds.families import FAMILIES
from benchmarks.worlds.names import (
    ALONE,
    HELD_OUT,
    MIXTURE,
    STEPS,
    TOLD,
    TRAINED,
    WITH_FAMILIES,
)
from benchmarks.worlds.scores import Row, families, leak, prompts, rows, worlds
from orbits.runs import trainings
from orbits.runs.result import Result
from orbits.runs.study import Study
from orbits.runs.table import NOTHING, Column, Table, Value

T = TypeVar("T")
TRAININGS = (MIXTURE, WITH_FAMILIES, TOLD, ALONE)
SHOWN = 3
"""Lengths of prompts in one table, evenly from the shortest to the longest."""
S = "Law inferred in context: S"
S_CAPTION = (
    "Share of a change of the prompt's law that continuations follow, after prompts of so many "
    "steps: 0 imposes one law, 1 infers it. Half: the longest prompt at half the time step. Moved: "
    "by how much that changes the exponent of continuations more than that of true orbits; above 0 "
    "if the law is read off the rate of sampling."
)
WORLDS = "Laws that continuations obey"
WORLDS_CAPTION = (
    "Exponent of the distance along each continuation alone, by test world, after the longest "
    "prompt. In brackets behind a heading: no law of the training is near."
)
HELD = "Laws held out of the training"
HELD_CAPTION = (
    "Bias: exponent of continuations at a law held out, less the line through those at the laws "
    "of the training, after the longest prompt. Nats of a next point in the four steps after it. "
    "Error: median distance in AU of planet - star from the truth, twelve steps after the prompt."
)
BIAS = "Bias at laws held out, by the prompt"
BIAS_CAPTION = "The same bias after prompts of so many steps; at each law held out."
READ_OUT = "Law read-out"
READ_OUT_CAPTION = (
    "A posterior over the exponent from the state at the end of a prompt, by ridge regressions of "
    "mean and spread on labelled sequences of the mixture, in the layer whose mean explains most: "
    "R², of sequences not fitted to (none where a run asked the last states alone). Log score: "
    "nats of density at the truth; a flat posterior over a range of 3 has -1.10. Coverage: of the "
    "central 90%, over test sequences of the mixture (of orbit fits, over all test worlds). The "
    "read-out of places sees no model."
)


SINGLE = "Laws of single steps"
SINGLE_CAPTION = (
    "Exponent of the distance along each orbit behind the kicks of single predicted places, from "
    "the true places before, by test world; S: the share of its change that follows the world, in "
    "units of true places in bins. A model that believes another law than the orbit obeys has its "
    "misfit of the state in a kick, too: these exponents name no law."
)
FAMILY_CAPTION = (
    "The same where a law is no power of the distance; test worlds are told apart by {}. The unit "
    "of S is the change of the exponent that true orbits in bins obey along each orbit. Orbit fits "
    "know the family."
)


def tables(study: Study, results: Sequence[Result]) -> list[Table]:
    """Return S, exponents by world, what is held out, and read-outs; then each other family."""
    found = rows(results)
    made = [_s(found), _worlds(found), _held_out(found), _bias(found), _read_out(found)]
    made.append(_steps(results))
    for family in families(results):
        there = rows(results, family)
        caption = FAMILY_CAPTION.format(f"{FAMILIES[family].parameter} (held out: in brackets)")
        for table in (_s(there), _worlds(there), _held_out(there)):
            made.append(
                dataclasses.replace(table, title=f"{table.title}: {family}", caption=caption)
            )
    made.append(exchange_report.table(results))
    return made


def _s(found: Sequence[Row]) -> Table:
    lengths = _shown(prompts(found))
    longest = max(lengths, default=0)
    headings = ("who", "trainings", *(f"{steps} steps" for steps in lengths), "half", "moved")
    made = []
    for row in found:
        if not row.metrics("S", longest):
            continue
        n_trainings = len(row.metrics("S", longest))
        boxes = [row.box("S", steps) for steps in lengths]
        boxes += [row.box("S", longest, half=True), trainings.box(leak(row, found))]
        made.append([_name(row), _count(row, n_trainings), *boxes])
    return _table(S, headings, made, S_CAPTION)


def _worlds(found: Sequence[Row]) -> Table:
    longest, held_out = max(prompts(found), default=0), worlds(found, "bias")
    names = _few(worlds(found), 6)
    headings = ("who", *(f"{x} (held out)" if x in held_out else x for x in names))
    made = [
        [_name(row), *(row.box(f"exponent@{x}", longest) for x in names)]
        for row in found
        if row.metrics("S", longest)
    ]
    return _table(WORLDS, headings, made, WORLDS_CAPTION)


def _held_out(found: Sequence[Row]) -> Table:
    longest, names = max(prompts(found), default=0), _few(worlds(found, "bias"), 2)
    headings = ("who", *(f"bias at {x}" for x in names), "nats, trained", "nats, held out")
    headings += ("error, trained", "error, held out")
    made = []
    for row in found:
        boxes = [row.box(f"bias@{x}", longest) for x in names]
        boxes += [row.box(f"nll@{kind}", longest) for kind in (TRAINED, HELD_OUT)]
        boxes += [row.box(f"error@{kind}", longest, form=".3f") for kind in (TRAINED, HELD_OUT)]
        if any(box != NOTHING for box in boxes):
            made.append([_name(row), *boxes])
    return _table(HELD, headings, made, HELD_CAPTION)


def _bias(found: Sequence[Row]) -> Table:
    at = _few(worlds(found, "bias"), 2)
    asked = [(x, steps) for x in at for steps in _shown(prompts(found))]
    names = tuple(f"at {x}, {steps} steps" for x, steps in asked)
    boxes = [(row, [row.box(f"bias@{x}", steps) for x, steps in asked]) for row in found]
    made = [[_name(row), *each] for row, each in boxes if any(box != NOTHING for box in each)]
    return _table(BIAS, ("who", *names), made, BIAS_CAPTION)


def _read_out(found: Sequence[Row]) -> Table:
    headings = ["who", "prompt", "layer", "R²", "log score, trained", "log score, held out"]
    headings.append("coverage")
    metrics = [f"log_score@{kind}" for kind in (TRAINED, HELD_OUT)]
    made = []
    for row in found:
        for steps in prompts(found):
            if not row.metrics(metrics[0], steps):
                continue
            layers, explained = row.read(steps)
            made.append(
                [
                    _name(row),
                    Value(str(steps)),
                    Value(", ".join(dict.fromkeys(layers))) if layers else NOTHING,
                    trainings.box(explained),
                    *(row.box(metric, steps) for metric in metrics),
                    row.box("coverage", steps, form=".0%"),
                ]
            )
    return _table(READ_OUT, headings, made, READ_OUT_CAPTION)


def _steps(results: Sequence[Result]) -> Table:
    found = rows(results, kinds=(STEPS,))
    names = _few(worlds(found), 5)
    made = [
        [_name(row), row.box("S", 0), *(row.box(f"exponent@{x}", 0) for x in names)]
        for row in found
    ]
    return _table(SINGLE, ("who", "S", *names), made, SINGLE_CAPTION)


def _table(
    title: str, headings: Iterable[str], made: Sequence[Sequence[Value]], caption: str
) -> Table:
    return Table(title, [Column(heading) for heading in headings], made, caption)


def _name(row: Row) -> Value:
    return Value(row.name, kind="name")


def _count(row: Row, n_trainings: int) -> Value:
    return Value(str(n_trainings)) if row.arm in TRAININGS else NOTHING


def _shown(lengths: Sequence[int]) -> list[int]:
    return _few(lengths, SHOWN)


def _few(values: Sequence[T], n: int) -> list[T]:
    """Return at most n values, the first and the last among them."""
    if len(values) <= n:
        return list(values)
    return [values[round(k * (len(values) - 1) / (n - 1))] for k in range(n)]
