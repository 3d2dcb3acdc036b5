"""The report of a run of probes: a section per probe, its seeds of one model in one row."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from orbits.runs.page import Report, Section
from orbits.runs.result import Metric, Result
from orbits.runs.statistics import MINIMUM_SEEDS
from orbits.runs.table import NOTHING, Column, Table, Value, interval, mean_over_seeds, number
from worldmodel import probes
from worldmodel.probes.implied.names import in_words
from worldmodel.probes.looks import own_setting
from worldmodel.probes.quantities import QUANTITIES, UNDECLARED
from worldmodel.probes.verdicts import speaks_of, verdict

OVER_SEEDS = "t, checkpoints"
OF_LAWS = ("law", "prompt", "trained_on", "world")
"""Facts and settings whose values are names of laws."""
TOLD_APART = ("trained_on", "size", "steps", "labels")
"""Facts of checkpoints that have a column where they differ."""
READING = (
    "A number with an interval: 95%, over the seeds of the checkpoints (Student's t) where a row "
    f"has {MINIMUM_SEEDS} or more, else over held-out sequences (bootstrap) unless the setting "
    f"says over what. Of {MINIMUM_SEEDS} angles, cosines, R2 or shares of at most 1 each is shown: "
    "they have bounds that no symmetric interval respects.",
    "A row of one seed says nothing about the next training of the same model.",
    "Heads of different checkpoints are trained on the same labels, so that an interval over "
    "checkpoints says nothing about other labels.",
    "Controls that are trained are trained anew for each checkpoint; references that no training "
    "changes have the interval over sequences.",
)


def report(results: Sequence[Result], title: str, setting: str, out: Path) -> Report:
    """Return the report of a run."""
    names = probes.names()
    shown = [result for result in results if result.ok and result.case.kind in names]
    sections: list[Section] = []
    answers: list[str] = []
    for name, group in groupby(sorted(shown, key=_kind), _kind):
        mine, probe = list(group), probes.get(name)
        pictures = probe.draw(mine, out)
        answers += [*verdict(name, mine), *probe.answers(mine)]
        front = [x for x in mine if speaks_of(name, x) or probe.is_in_front(x)]
        tables = [table(part, title, front) for title, part in probe.parts(mine).items() if part]
        sections.append(Section(name, tables, [probe.about], pictures))
    models = sorted({_title(result) for result in shown})
    return Report(
        title=title,
        setting=f"{setting} Models: {'; '.join(models)}.",
        sentences=answers,
        sections=[*sections, Section("How to read the numbers", sentences=READING)],
    )


def table(results: Sequence[Result], title: str = "", front: Sequence[Result] = ()) -> Table:
    """Return the table of one probe's results, seeds of one model together."""
    settings = list(dict.fromkeys(key for result in results for key in own_setting(result)))
    facts = [k for k in TOLD_APART if len({r.details["checkpoint"][k] for r in results}) > 1]
    metrics = list(dict.fromkeys(key for result in results for key in result.metrics))
    header = [*facts, *settings, "variant", "arm", "seeds", *metrics]
    rows: list[list[Value]] = []
    places = []
    for mine in _alike(results):
        places += [len(rows)] * any(result is x for result in mine for x in front)
        case, checkpoint = mine[0].case, mine[0].details["checkpoint"]
        seeds = len({result.case.seed for result in mine})
        values = {m: [r.metrics[m] for r in mine if m in r.metrics] for m in metrics}
        setting = own_setting(mine[0])
        if "interval" in setting and any(map(_pooled, values.values())):
            setting["interval"] = OVER_SEEDS
        words = [
            *(_words(key, checkpoint[key]) for key in facts),
            *(_words(key, setting.get(key, "")) for key in settings),
            case.variant,
            case.arm,
        ]
        rows.append(
            [
                *(Value(text, kind="name") for text in words),
                number(seeds, "g"),
                *(_together(name, each) for name, each in values.items()),
            ]
        )
    return Table(title, [Column(name) for name in header], rows, front=places)


def _kind(result: Result) -> str:
    return result.case.kind


def _title(result: Result) -> str:
    row = result.details["checkpoint"]
    elsewhere = "" if row["law"] == row["trained_on"] else f", trained on {row['trained_on']}"
    world = f"{row['protocol']}, {row['law']}{elsewhere}"
    return f"{row['model']}, {row['arm']}, seed {row['seed']} ({world})"


def _alike(results: Sequence[Result]) -> Iterable[list[Result]]:
    """Return the results of each row, which differ in their seed alone."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        checkpoint = result.details["checkpoint"]
        facts = [checkpoint[key] for key in TOLD_APART]
        key = [own_setting(result), result.case.variant, result.case.arm, facts]
        groups.setdefault(json.dumps(key, sort_keys=True), []).append(result)
    return groups.values()


def _pooled(seeds: Sequence[Metric]) -> bool:
    """Return whether a metric has an interval over seeds, and not that of one reference."""
    values = [metric.value for metric in seeds]
    enough = len(values) >= MINIMUM_SEEDS and len(set(values)) > 1
    return enough and all(map(math.isfinite, values))


def _together(name: str, seeds: Sequence[Metric]) -> Value:
    """Return one metric over the seeds of a model."""
    if not seeds:
        return NOTHING
    values = [metric.value for metric in seeds]
    if len(set(values)) == 1:  # a reference that no training changes
        return _number(seeds[0])
    if name.endswith("standard_error"):  # it has no interval of its own
        return number(fmean(values), ".4g")
    if _pooled(seeds):
        return mean_over_seeds(values, ".3g", QUANTITIES.get(name, UNDECLARED).bounds)
    each = [_number(metric) for metric in seeds]
    return Value("; ".join(x.words for x in each), order=fmean(values))


def _number(metric: Metric) -> Value:
    if metric.interval is None:
        return number(metric.value, ".4g")
    if len(set(metric.interval)) == 1:
        return number(metric.value, ".3g")
    return interval(metric.interval)


def _words(key: str, value: Any) -> str:
    """Return a fact or a setting as a table has it: a law as its power of the distance."""
    if key in OF_LAWS:
        with contextlib.suppress(ValueError):  # a law that is not here has its name alone
            return in_words(value)
    return value if isinstance(value, str) else json.dumps(value)
