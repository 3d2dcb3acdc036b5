"""Tables: scores by backbone, sources of their variance, backbones, and correlations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from statistics import fmean

from benchmarks.few_labels.correlations import correlations
from benchmarks.few_labels.scores import (
    ARMS,
    LAST,
    STOPPED,
    Group,
    backbones,
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
from orbits.runs.table import NOTHING, Column, Table, Value, number

SCORES = "Scores by backbone"
SCORES_CAPTION = (
    "Test sequences of the training box, R² of ln F; each number is a label set, in one order "
    "throughout. Stopped: the step of the lowest validation loss; the sequences that validate are "
    "further labelled ones. Error: root mean square of ln F at the last step over that of the "
    "causal ceiling. Without a backbone: law-free baselines fitted to the same labels. Where the "
    "table is shortened, each attention, fine-tuning and rate has its backbone of median R²."
)
VARIANCE = "Where the variance of R² lies"
VARIANCE_CAPTION = (
    "Shares of the sum of squares about the mean, a two-way decomposition over backbones and label "
    "sets; expected of independent values. A label set has its own order of "
    "sequences."
)
BACKBONES = "Backbones before fine-tuning"
BACKBONES_CAPTION = (
    "Validation loss of pre-training, and the mean entropy of a row of attention weights at the "
    "rows at which forces are asked and at the star's rows beside them, held-out sequences, nats."
)
ORDER = "What of a backbone goes with its score"
ORDER_CAPTION = (
    "Spearman's rank correlation with the mean R² over label sets at the last step, fine-tuned "
    "with re-weighting. p: exact, over all orders of the n backbones, and so never below 2 / n!; "
    "Holm's correction is for this table."
)


def tables(study: Study, results: Sequence[Result]) -> list[Table]:
    """Return scores, their variance, the backbones and correlations with their scores."""
    found = groups(results)
    return [
        _scores(found, results),
        _variance(found),
        _backbones(results),
        _order(found, results),
    ]


def _scores(found: Sequence[Group], results: Sequence[Result]) -> Table:
    headings = ("attention", "fine-tuning", "rate", "steps", "backbone", "R²", "train R²")
    columns = [Column(heading) for heading in headings]
    columns += [Column("error / ceiling", leaves=1), Column("R², stopped"), Column("at step")]
    rows: list[list[Value]] = []
    front = []
    for group in found:
        ranked = sorted(group.means(LAST).items(), key=lambda item: item[1])
        median = ranked[(len(ranked) - 1) // 2][0]
        front.append(len(rows) + [*group.scores()].index(median))
        trained, errors = (group.scores(LAST, x) for x in ("r2_log_train", "times_ceiling"))
        stopped, steps = (group.scores(STOPPED, x) for x in ("r2_log", "step"))
        for seed, sets in group.scores().items():
            boxes = [_box(sets.values()), _box(trained[seed].values())]
            boxes += [_box(errors[seed].values(), ".1f"), _box(stopped[seed].values())]
            rows.append([*_names(group), Value(str(seed)), *boxes, _box(steps[seed].values(), "g")])
    for name, baseline in controls(results).items():
        scores, errors_of = (
            [x for result in baseline.values() if (x := result.value(metric)) is not None]
            for metric in ("r2_log", "times_ceiling")
        )
        boxes = [_box(scores), NOTHING, _box(errors_of, ".1f"), NOTHING, NOTHING]
        front.append(len(rows))
        rows.append([Value(name, kind="name"), *[NOTHING] * 4, *boxes])
    return Table(SCORES, columns, rows, SCORES_CAPTION, front=front)


def _variance(found: Sequence[Group]) -> Table:
    headings = ("attention", "fine-tuning", "rate", "steps", "asked", "failed", "sd of R²")
    columns = [Column(heading) for heading in headings]
    for part in ("backbones", "label sets", "rest"):
        columns += [Column(part), Column(f"{part}, expected", leaves=1)]
    rows = []
    for group, asked in itertools.product(found, (LAST, STOPPED)):
        if (each := shares(rectangle(group.scores(asked)))) is None:
            continue
        parts = zip((each.rows, each.columns, each.rest), each.chance, strict=True)
        rows.append(
            [
                *_names(group),
                Value(asked, kind="name"),
                Value(f"{len(group.failed(asked))} of {len(group.means(asked))}"),
                number(each.deviation, ".2f"),
                *(number(share, ".0%") for pair in parts for share in pair),
            ]
        )
    return Table(VARIANCE, columns, rows, VARIANCE_CAPTION)


def _backbones(results: Sequence[Result]) -> Table:
    measured = backbones(results)
    measures = dict.fromkeys(name for each in measured.values() for name in each)
    columns = [Column(x) for x in ("attention", "backbone", *map(in_words, measures))]
    rows = [
        [
            Value(variant, kind="name"),
            Value(str(seed)),
            *(number(each.get(measure), ".3f") for measure in measures),
        ]
        for (variant, seed), each in sorted(measured.items())
    ]
    return Table(BACKBONES, columns, rows, BACKBONES_CAPTION)


def _order(found: Sequence[Group], results: Sequence[Result]) -> Table:
    tested = correlations(found, results)
    adjusted = holm([each.p for _, _, each in tested])
    headings = ("attention", "fine-tuning", "rate", "steps", "measure", "rho", "p", "Holm", "n")
    rows = [
        [
            *_names(group),
            Value(in_words(measure), kind="name"),
            number(each.rho, ".2f"),
            number(each.p, ".2g"),
            number(p, ".2g"),
            Value(str(each.n)),
        ]
        for (group, measure, each), p in zip(tested, adjusted, strict=True)
    ]
    return Table(ORDER, [Column(x) for x in headings], rows, ORDER_CAPTION)


def _names(group: Group) -> list[Value]:
    names = [Value(text, kind="name") for text in (group.variant, ARMS[group.arm])]
    return [*names, number(group.lr, "g"), Value(str(group.steps))]


def _box(values: Iterable[float], form: str = ".2f") -> Value:
    """Return points as a box of a table."""
    found = list(values)
    if not found:
        return Value("-")
    return Value(points(found, form), order=fmean(found))
