"""Bigram-backcopy: a chain of symbols in which a head has something to do at few places only.

Guo et al., "Active-Dormant Attention Heads" (arXiv:2410.13835): a model of one layer that is
trained on it grows an attention sink, which language models of the sizes that a CPU trains do not.
So it asks what Lazy Attention, Table 2, asks of language models: which forms of the offset prevent
the sink, and what it costs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.rates import best
from benchmarks.recall.base import BASELINE, METRICS, Headline, RecallStudy, share
from benchmarks.recall.measures import IGNORE, Integers, Reals
from benchmarks.recall.problem import Problem
from benchmarks.recall.sweep import Exercise, Sweep
from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred
from orbits.runs.result import Metric, Quantity, Result
from orbits.runs.settings import check_at_least
from orbits.runs.statistics import Seeds
from orbits.runs.table import Table, by_variant, seed_table
from orbits.runs.verdict import against, beside, shown

CONCENTRATION = 0.3
"""Of the Dirichlet distribution of the chain's rows: some five likely successors of 32 symbols."""


@functools.cache
def transitions(n_symbols: int) -> Reals:
    """Return the chain's probabilities, [from, to]: one chain for each number of symbols."""
    rng = np.random.default_rng(n_symbols)
    return rng.dirichlet(np.full(n_symbols, CONCENTRATION), size=n_symbols)


@dataclass(frozen=True)
class Backcopy(Problem):
    """Predict the next symbol of a chain whose triggers are followed by what came before them.

    After an ordinary symbol the next one is drawn from its row of :func:`transitions`, for which
    nothing but that symbol need be known. After a trigger, one of the first ``n_triggers``
    symbols, the symbol before it comes again. A marker that says nothing, the last token, stands
    at one place of every row; behind it the chain starts anew. What comes first and the marker are
    not asked for; a trigger with no symbol before it is an ordinary symbol.

    Measures: the loss above the least one that can be had, in nats, over all that is asked and
    after triggers alone, and the share of right answers after triggers.

        >>> rows = Backcopy(n_symbols=8, n_triggers=2, seq_len=10).examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [8, 7, 2, 4, 3, 1, 3, 5, 3, 6]
        >>> rows.targets[0].tolist()
        [-100, 2, 4, 3, 1, 3, 5, 3, 6, 7]

    Attributes:
        n_symbols: Symbols of the chain.
        n_triggers: Triggers among them; 0 for none.
        seq_len: Tokens of a row, L.
        marker_at: Place of the marker, from 0; None for no marker.

    Raises:
        ValueError: Too few symbols, or a marker that is not in the row.
    """

    stream: ClassVar[str] = "backcopy"
    weighs: ClassVar[bool] = True
    n_symbols: int = 32
    n_triggers: int = 4
    seq_len: int = 64
    marker_at: int | None = 0

    def __post_init__(self) -> None:
        check_at_least(self, {"n_triggers": 0, "n_symbols": self.n_triggers + 2, "seq_len": 4})
        if self.marker_at is not None and not 0 <= self.marker_at < self.seq_len:
            raise ValueError(f"marker_at must be in [0, {self.seq_len}), got {self.marker_at}")

    @property
    def vocab_size(self) -> int:
        """The symbols and the marker."""
        return self.n_symbols + 1

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw a chain."""
        cumulative, draws = transitions(self.n_symbols).cumsum(axis=1), rng.random(self.seq_len + 1)
        text = np.full(self.seq_len + 1, self.n_symbols)
        asked = np.zeros(self.seq_len + 1, bool)
        start = 0
        for place, draw in enumerate(draws):
            if place == self.marker_at:
                start = place + 1
                continue
            asked[place] = place > start
            if place == start:
                text[place] = int(draw * self.n_symbols)
            elif place > start + 1 and text[place - 1] < self.n_triggers:
                text[place] = text[place - 2]
            else:
                row = cumulative[text[place - 1]]
                text[place] = np.searchsorted(row, draw * row[-1], side="right")
        return text[:-1], np.where(asked, text, IGNORE)[1:]

    def triggered(self, tokens: Integers) -> np.ndarray:
        """Return where the symbol before is what comes next, bool [N, L]."""
        before = np.roll(tokens, 1, axis=1)
        there = (tokens < self.n_triggers) & (before < self.n_symbols)
        there[:, 0] = False
        return there

    def measure(self, answers: Integers, split: str, seed: int, at: str) -> dict[str, Metric]:
        """Return the share of right answers after triggers; nothing without any."""
        rows = self.examples(split, seed, np.arange(len(answers)))
        copies = self.triggered(rows.tokens) & (rows.targets != IGNORE)
        if not copies.any():
            return {}
        right = (answers == rows.targets)[copies].mean()
        return {"copied": Metric(100 * float(right), n=len(answers))}

    def measure_distributions(
        self, shares: Reals, split: str, seed: int, at: str
    ) -> dict[str, Metric]:
        """Return the loss above the least, of exact distributions: free of the noise of draws."""
        rows = self.examples(split, seed, np.arange(len(shares)))
        asked, copies = rows.targets != IGNORE, self.triggered(rows.tokens)
        true = transitions(self.n_symbols)[np.minimum(rows.tokens, self.n_symbols - 1)]
        true = np.pad(true, ((0, 0), (0, 0), (0, 1)))  # the marker is never drawn
        copied = np.eye(self.vocab_size)[np.where(asked, rows.targets, 0)]
        true = np.where(copies[..., None], copied, true)
        tiny = np.finfo(np.float64).tiny
        logs = np.log(np.maximum(true, tiny)) - np.log(np.maximum(shares, tiny))
        excess = (true * logs).sum(axis=2)
        measured = {"excess": asked, "excess_copy": asked & copies}
        return {
            name: Metric(float(excess[where].mean()), n=len(shares))
            for name, where in measured.items()
            if where.any()
        }


PROBLEM = Backcopy


@dataclass(frozen=True)
class BackcopySweep(Sweep):
    """Settings of models, of their chain and of the controls.

    Attributes:
        head_dim: Channels per head.
        n_train: Number of different training rows; None for new ones at every step.
        n_symbols: Symbols of the chain.
        n_triggers: Symbols that ask for a copy.
        seq_len: Tokens of a row.
        controls: Variants that are trained without triggers, without the marker, and with the
            marker at each of ``markers``, too.
        markers: Places of the marker in controls.
    """

    head_dim: int = 64
    n_train: int | None = None
    n_symbols: int = 32
    n_triggers: int = 4
    seq_len: int = 64
    controls: tuple[str, ...] = (BASELINE,)
    markers: tuple[int, ...] = (4, 16, 48)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, {"n_triggers": 1, "markers": 1})
        for name in self.controls:
            check_choice("controls", name, self.attention)

    def exercises(self) -> Iterator[Exercise]:
        """Yield the exercise of all variants, and those of the controls."""
        places = (0, None, *self.markers)
        asked = [(self.n_triggers, place) for place in places] + [(0, 0)]
        if not self.controls:
            asked = asked[:1]
        for number, (n_triggers, place) in enumerate(asked):
            problem = Backcopy(self.n_symbols, n_triggers, self.seq_len, place)
            yield Exercise(
                problem,
                self.head_dim,
                self.n_train,
                {"": problem},
                {"triggers": n_triggers, "marker": "none" if place is None else place},
                attention=self.controls if number else None,
            )


SHARE = (0, 100)
"""Bounds of a share of weights, in %."""
PARTS = {"sink_idle": "where nothing is copied", "sink_copying": "at copies"}
"""The weight on the first key in rows of two kinds, in words."""


class BackcopyStudy(RecallStudy):
    """Attention sinks where they form."""

    name = "backcopy"
    about = "Where an attention sink forms, which attention prevents it, and at what cost?"
    Settings = BackcopySweep
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "excess": Quantity("lower", "nats per token", "loss above the least that can be had"),
        "excess_copy": Quantity("lower", "nats per token", "the same after triggers"),
        "copied": share("right answers after triggers"),
        "sink": Quantity("lower", "%", "mean weight on the first key", bounds=SHARE),
        "uniform": Quantity("none", "%", "the same of uniform attention"),
        "sink_idle": Quantity(
            "none", "%", "the same in rows of ordinary symbols, which need no other", bounds=SHARE
        ),
        "sink_copying": Quantity("none", "%", "the same in rows of triggers", bounds=SHARE),
        "density": Quantity("lower", "%", "mean mass on the other keys", bounds=SHARE),
        "missing": Quantity(
            "none", "%", "mass that rows lack: 100 less sink and density", bounds=SHARE
        ),
        "zeros": Quantity(
            "none", "%", "share of visible keys whose weight is exactly 0", bounds=SHARE
        ),
        "entropy": Quantity("none", "nats", "mean entropy of a row"),
        "received": Quantity("none", "%", "mean weight on the marker, of the rows after it"),
        "uniform_received": Quantity("none", "%", "the same of uniform attention"),
        "norm_v": Quantity("none", "", "norm of the first value by the mean of the others"),
        **METRICS,
    }
    keys = ("variant",)
    cells = deferred("benchmarks.recall.backcopy_cells:cells")

    def headline(self, results: Sequence[Result]) -> Headline | None:
        """Return the sink of all variants beside uniform attention's; none of controls."""
        mine = _asked(results)
        if not mine:
            return None
        caption = "Mean weight on the first key, beside that of uniform attention."
        axis = "weight on the first key, %"
        return Headline("sink", "sink", caption, axis, mine[0].value("uniform"), "uniform")

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return tables of the losses, of the attention, and of the controls."""
        results = best(results)
        mine, controls = _asked(results), [x for x in results if not _asked([x])]
        loss = ("excess", "excess_copy", "copied", "reweighted")
        weights = ("sink", "sink_idle", "sink_copying", "density", "missing", "norm_v")
        beside_it = ("sink", "uniform", "received", "uniform_received")
        tables = [
            self.seed_table("What is learned", mine, self.keys, loss),
            self.seed_table("Where the weight goes", mine, self.keys, weights),
            self.seed_table("The shape of rows", mine, self.keys, ("uniform", "zeros", "entropy")),
        ]
        if controls:
            keys = ("variant", "triggers", "marker")
            tables.append(seed_table("Controls", controls, keys, beside_it))
        return tables

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Say whether softmax has a sink, who has less, what it costs, and what it hangs on."""
        results = best(results)
        mine = _asked(results)
        sinks = by_variant(mine, "sink")
        if BASELINE not in sinks:
            return []
        uniform, parts = mine[0].value("uniform"), []
        for name, words in PARTS.items():
            seeds = by_variant(mine, name).get(BASELINE)
            parts += [f"{self._said(seeds)} {words}"] if seeds else []
        said = f"{BASELINE} puts {self._said(sinks[BASELINE])} of its weight on the first token"
        sentences = ["; ".join([f"{said}, uniform attention {uniform:.1f}%", *parts]) + "."]
        for what, name, form, unit in (
            ("Weight on the first token", "sink", ".1f", " points"),
            ("Loss above the least", "excess", ".4f", " nats"),
            ("Loss after triggers", "excess_copy", ".4f", " nats"),
        ):
            if compared := beside(against(by_variant(mine, name), BASELINE), BASELINE, form, unit):
                sentences.append(f"{what}: {compared}.")
        without = [x for x in results if x.case.get("triggers") == 0]
        for name, seeds in by_variant(without, "sink").items():
            sentences.append(f"Without triggers {name} puts {self._said(seeds)} there.")
        return sentences

    def _said(self, seeds: Seeds) -> str:
        return shown(seeds, ".1f", "%", SHARE)


def _asked(results: Sequence[Result]) -> list[Result]:
    """Return the results of what all variants are trained on: triggers, and the marker first."""
    return [x for x in results if x.case.get("triggers") and x.case.get("marker") == 0]


STUDY = BackcopyStudy()
