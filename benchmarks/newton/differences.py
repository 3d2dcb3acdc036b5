"""Differences between rows that share seeds: pair by pair, and all models at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.newton.control_names import TRAINED
from benchmarks.newton.worlds import as_number
from orbits.runs.at_once import at_once
from orbits.runs.result import Result, grouped
from orbits.runs.statistics import LEVEL, MINIMUM_SEEDS, compare
from orbits.runs.table import Column, Table, Value
from orbits.runs.verdict import PAIRS, box, signed
from symreg.leaderboard import Row, values_by_seed

TITLE = "Differences, seed by seed"
WHICH = "Which models differ"


def _ln(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


MEASURES: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "exponent_m1": ("m1", float),
    "exponent_m2": ("m2", float),
    "exponent_r": ("r", float),
    "constant": ("constant", float),
    "rms_log_error": ("ln rms error", _ln),
    "exam": ("ln exam", _ln),
}
"""Metrics of a force head: the heading, and the function of the value that is compared."""
NEXT_POINT: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "nll": ("nats per point", float),
    "planet_error": ("ln planet error", _ln),
    "star_error": ("ln star error", _ln),
}
"""Metrics of a world model, likewise."""


@dataclass(frozen=True)
class Trained:
    """Trainings that differ in the seed alone.

    Attributes:
        model: The attention or mixer.
        arm: Arm: the kind of the training.
        labels: The label budget.
        failed: Number of trainings that failed; the others are no sample of all.
        values: Values of each metric by seed.
    """

    model: str
    arm: str
    labels: str
    failed: int
    values: Mapping[str, Mapping[int | None, float]]


@dataclass(frozen=True)
class Differences:
    """The comparisons of one table.

    Attributes:
        table: A row per pair and a column per metric.
        at_once: A row per arm and budget and a column per metric; no row for two models.
        claims: The differences that are claimed, in sentences.
        matrix: The same, a row and a column per model; None where nothing is claimed.
    """

    table: Table
    at_once: Table
    claims: Sequence[str]
    matrix: Table | None = None


@dataclass(frozen=True)
class Claim:
    """A difference that is claimed.

    Attributes:
        one: The trainings whose metric is compared.
        other: The trainings whose metric is subtracted.
        metric: The heading of the metric.
        mean: The mean difference, and its interval in brackets.
    """

    one: Trained
    other: Trained
    metric: str
    mean: str

    @property
    def words(self) -> str:
        """Text of the claim in a box of the matrix."""
        same = self.one.model == self.other.model  # then two arms are compared
        labels = f"{self.one.labels} labels" if self.one.labels else ""
        trained = ", ".join(filter(None, ("" if same else self.one.arm, labels)))
        return f"{trained}: {self.metric} {self.mean}" if trained else f"{self.metric} {self.mean}"


def differences(table: Sequence[Row], results: Iterable[Result]) -> list[Differences]:
    """Compare force heads, and world models, where there are two.

    Pairs of heads are a model's two arms at one budget, and two attentions that were trained
    alike. Each metric of a table is a family, all pairs of which count.
    """
    trained = [row for row in table if row.arm in TRAINED]
    heads = [
        Trained(row.model, row.arm, row.labels, row.failed, row.values)
        for row in sorted(trained, key=lambda x: (x.arm, as_number(x.labels), x.model))
    ]
    groups = [("forces", heads, MEASURES), ("world models", _world_models(results), NEXT_POINT)]
    return [_compared(*group) for group in groups if _pairs(group[1])]


def _pairs(rows: Sequence[Trained]) -> dict[str, tuple[Trained, Trained]]:
    """Return the pairs that are compared, by their names: the first less the second."""
    pairs = {}
    both = list(itertools.combinations(rows, 2))
    for one, other in both:
        if (one.model, one.labels) == (other.model, other.labels):
            where = ", ".join(filter(None, (one.model, one.labels and f"{one.labels} labels")))
            pairs[f"{where}: {one.arm} - {other.arm}"] = one, other
    for one, other in both:
        if (one.arm, one.labels) == (other.arm, other.labels):
            where = ", ".join(filter(None, (one.arm, one.labels and f"{one.labels} labels")))
            pairs[f"{where or 'world model'}: {one.model} - {other.model}"] = one, other
    return pairs


def _compared(
    what: str,
    trained: Sequence[Trained],
    measures: Mapping[str, tuple[str, Callable[[float], float]]],
) -> Differences:
    title, pairs = f"{TITLE}: {what}", _pairs(trained)
    rows = [row for pair in pairs.values() for row in pair]
    measures = {x: y for x, y in measures.items() if any(x in row.values for row in rows)}
    whole = {name: pair for name, pair in pairs.items() if not any(x.failed for x in pair)}
    readers = {heading: _reader(metric, of) for metric, (heading, of) in measures.items()}
    families = {
        heading: compare({name: (read(a), read(b)) for name, (a, b) in whole.items()})
        for heading, read in readers.items()
    }
    body, claims = [], []
    claimed: list[Claim] = []
    for name in pairs:
        found = {heading: family.get(name) for heading, family in families.items()}
        boxes = {heading: box(each) for heading, each in found.items()}
        body.append([Value(name, kind="name"), *boxes.values()])
        claims += [
            f"{name}: {heading} differs by {boxes[heading].words}."
            for heading, each in found.items()
            if each is not None and each.differs
        ]
        claimed += [
            Claim(*pairs[name], heading, signed(each))
            for heading, each in found.items()
            if each is not None and each.differs
        ]
    number = max(map(len, families.values()))
    if number and not claims:
        claims = [f"{title}: none is claimed of {number} pairs in {len(families)} metrics."]
    if not number:
        claims = [f"{title}: no claim, for want of {MINIMUM_SEEDS} common seeds without failures."]
    caption = (
        f"{PAIRS.format('', number)} and said above: where no pair differs, a column claims one in "
        f"at most {LEVEL:.0%} of such tables. "
        f"Pairs with fewer than {MINIMUM_SEEDS} common seeds, or with a failed training, have none."
    )
    columns = [Column("pair"), *(Column(heading) for heading in families)]
    both = _matrix(f"{WHICH}, {what}", claimed, pairs) if claimed else None
    together, first = at_once(what, _alike(trained), readers)
    return Differences(Table(title, columns, body, caption), together, [*first, *claims], both)


def _alike(trained: Sequence[Trained]) -> dict[str, dict[str, Trained]]:
    """Return models of one arm and budget; a group with a failed training is no sample of all."""
    found = grouped(trained, lambda row: (row.arm, row.labels))
    return {
        ", ".join(filter(None, (arm, labels and f"{labels} labels"))) or "world models": {
            row.model: row for row in rows
        }
        for (arm, labels), rows in found.items()
        if not any(row.failed for row in rows)
    }


def _matrix(
    title: str, claims: Sequence[Claim], pairs: Mapping[str, tuple[Trained, Trained]]
) -> Table:
    """Return the claims as a matrix: the row's model less the column's, arms on the diagonal."""
    models = sorted({row.model for pair in pairs.values() for row in pair})
    arms = [pair for pair in pairs.values() if pair[0].arm != pair[1].arm]
    found: dict[tuple[str, str], list[str]] = {}
    for claim in claims:
        found.setdefault((claim.one.model, claim.other.model), []).append(claim.words)
    body = []
    for place, one in enumerate(models):
        boxes = []
        for column, other in enumerate(models):
            compared = column > place or (column == place and bool(arms))
            text = "; ".join(found.get((one, other), ["·" if compared else ""]))
            boxes.append(Value(text, kind="name"))
        body.append([Value(one, kind="name"), *boxes])
    caption = (
        "What is claimed: mean of the row's model less the column's [95% by Student's t, of this "
        "pair alone]. A dot: compared, and nothing claimed, which does not make them equal."
    )
    if arms:
        caption += f" On the diagonal: {arms[0][0].arm} less {arms[0][1].arm}."
    columns = [Column("row less column"), *(Column(model) for model in models)]
    return Table(title, columns, body, caption)


def _reader(
    metric: str, of: Callable[[float], float]
) -> Callable[[Trained], dict[int | None, float]]:
    """Return a function that reads the values of a metric by seed."""
    return lambda row: {seed: of(value) for seed, value in row.values.get(metric, {}).items()}


def _world_models(results: Iterable[Result]) -> list[Trained]:
    asked = (x for x in results if x.case.kind == "next point" and x.case.seed is not None)
    found = grouped(asked, lambda result: result.case.variant)
    return [
        Trained(model, "", "", sum(not x.ok for x in members), values_by_seed(members))
        for model, members in sorted(found.items())
    ]
