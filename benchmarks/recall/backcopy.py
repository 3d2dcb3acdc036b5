"""Bigram-backcopy: a chain of symbols in which a head has something to do at few places only.

Guo et al., "Active-Dormant Attention Heads" (arXiv:2410.13835): a model of one layer that is
trained on it grows an attention sink, which language models of the sizes that a CPU trains do not.
So it asks what Lazy Attention, Table 2, asks of language models: which forms of the offset prevent
the sink, and what it costs.

An offset takes weight from all keys, at the start of training too, so that less on the first key
is no prevention by itself. Beside it stand the share of a row's own mass that is there, what models
have before their training, and a softmax that is trained as one and has the offset put in after.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmarks.rates import best
from benchmarks.recall import backcopy_report
from benchmarks.recall.backcopy_report import SHARE, UNMARKED, asked
from benchmarks.recall.base import BASELINE, METRICS, Headline, RecallStudy, share
from benchmarks.recall.measures import IGNORE, Integers, Reals
from benchmarks.recall.problem import Problem, at_test
from benchmarks.recall.sweep import Exercise, Sweep
from orbits.runs.at_once import Compared
from orbits.runs.deferred import deferred
from orbits.runs.page import Picture
from orbits.runs.result import Metric, Quantity, Result
from orbits.runs.settings import check_at_least
from orbits.runs.table import Table

CONCENTRATION = 0.3
"""Concentration of a row's Dirichlet distribution: some five likely successors of 32 symbols."""


@functools.cache
def transitions(n_symbols: int, chain: int) -> Reals:
    """Return the probabilities of a chain, [from, to], read-only."""
    rng = np.random.default_rng([n_symbols, chain])
    made = rng.dirichlet(np.full(n_symbols, CONCENTRATION), size=n_symbols)
    made.flags.writeable = False
    return made


@dataclass(frozen=True)
class Backcopy(Problem):
    """Predict the next symbol of a chain whose triggers are followed by what came before them.

    After an ordinary symbol the next one is drawn from its row of :func:`transitions`, for which
    nothing but that symbol need be known. After a trigger, one of the first ``n_triggers``
    symbols, the symbol before it comes again. A chain starts with an ordinary symbol, so that no
    trigger ever follows another. A marker that says nothing, the last token, stands at one place
    of every row; behind it the chain starts anew. What starts a chain and the marker are not asked
    for.

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
        chain: Number of the chain: of its transitions, and so of how common triggers are.

    Raises:
        ValueError: Too few symbols, or a marker that is not in the row.
    """

    stream: ClassVar[str] = "backcopy"
    weighs: ClassVar[bool] = True
    n_symbols: int = 32
    n_triggers: int = 4
    seq_len: int = 64
    marker_at: int | None = 0
    chain: int = 0

    def __post_init__(self) -> None:
        least = {"n_triggers": 0, "n_symbols": self.n_triggers + 2, "seq_len": 4, "chain": 0}
        check_at_least(self, least)
        if self.marker_at is not None and not 0 <= self.marker_at < self.seq_len:
            raise ValueError(f"marker_at must be in [0, {self.seq_len}), got {self.marker_at}")

    @property
    def vocab_size(self) -> int:
        """The symbols and the marker."""
        return self.n_symbols + 1

    def row(self, rng: np.random.Generator, split: str) -> tuple[Integers, Integers]:
        """Draw a chain."""
        cumulative = transitions(self.n_symbols, self.chain).cumsum(axis=1)
        text = np.full(self.seq_len + 1, self.n_symbols)
        asked = np.zeros(self.seq_len + 1, bool)
        start = 0
        for place, draw in enumerate(rng.random(self.seq_len + 1)):
            if place == self.marker_at:
                start = place + 1
                continue
            asked[place] = place > start
            if place == start:
                text[place] = self.n_triggers + int(draw * (self.n_symbols - self.n_triggers))
            elif text[place - 1] < self.n_triggers:
                text[place] = text[place - 2]
            else:
                row = cumulative[text[place - 1]]
                text[place] = np.searchsorted(row, draw * row[-1], side="right")
        return text[:-1], np.where(asked, text, IGNORE)[1:]

    def measure(self, answers: Integers, split: str, seed: int, at: str) -> dict[str, Metric]:
        """Return the share of right answers after triggers; nothing without any."""
        rows = self.examples(split, seed, np.arange(len(answers)))
        copies = (rows.tokens < self.n_triggers) & (rows.targets != IGNORE)
        if not copies.any():
            return {}
        right = (answers == rows.targets)[copies].mean()
        return {at_test("copied", at): Metric(100 * float(right), n=len(answers))}

    def measure_distributions(
        self, shares: Reals, split: str, seed: int, at: str
    ) -> dict[str, Metric]:
        """Return the loss above the least, of exact distributions: free of the noise of draws."""
        rows = self.examples(split, seed, np.arange(len(shares)))
        asked, copies = rows.targets != IGNORE, rows.tokens < self.n_triggers
        known = transitions(self.n_symbols, self.chain)
        true = known[np.minimum(rows.tokens, self.n_symbols - 1)]
        true = np.pad(true, ((0, 0), (0, 0), (0, 1)))  # the marker is never drawn
        copied = np.eye(self.vocab_size)[np.where(asked, rows.targets, 0)]
        true = np.where(copies[..., None], copied, true)
        tiny = np.finfo(np.float64).tiny
        logs = np.log(np.maximum(true, tiny)) - np.log(np.maximum(shares, tiny))
        excess = (true * logs).sum(axis=2)
        measured = {"excess": asked, "excess_copy": asked & copies}
        return {
            at_test(name, at): Metric(float(excess[where].mean()), n=len(shares))
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
        controls: Names that, where they are among ``attention``, are also trained on another
            chain, without triggers, without the marker, and with the marker at each of
            ``markers``; empty for no controls.
        markers: Places of the marker in controls, from 1.
    """

    head_dim: int = 64
    n_train: int | None = None
    n_symbols: int = 32
    n_triggers: int = 4
    seq_len: int = 64
    controls: tuple[str, ...] = (BASELINE,)
    markers: tuple[int, ...] = (16,)

    def __post_init__(self) -> None:
        check_at_least(self, {"n_triggers": 1, "markers": 1})
        if self.n_symbols < self.n_triggers + 2:
            raise ValueError(
                f"n_symbols must be at least n_triggers + 2, {self.n_triggers + 2}, got "
                f"{self.n_symbols}"
            )
        if beyond := [place for place in self.markers if place >= self.seq_len]:
            raise ValueError(f"markers must be below seq_len {self.seq_len}, got {beyond[0]}")
        super().__post_init__()

    def exercises(self) -> Iterator[Exercise]:
        """Yield the exercise of all variants, and those of the controls."""
        yield self._exercise(self.n_triggers, 0, 0)
        if self._controls:
            yield self._exercise(self.n_triggers, 0, 1)
            yield self._exercise(0, 0, 0)
            for place in (None, *self.markers):
                yield self._exercise(self.n_triggers, place, 0)

    @property
    def _controls(self) -> tuple[str, ...]:
        return tuple(name for name in self.controls if name in self.attention)

    def _exercise(self, n_triggers: int, place: int | None, chain: int) -> Exercise:
        problem, unmarked = (
            Backcopy(self.n_symbols, n_triggers, self.seq_len, x, chain) for x in (place, None)
        )
        marker = "none" if place is None else place
        return Exercise(
            problem,
            self.head_dim,
            self.n_train,
            {"": problem, **({UNMARKED: unmarked} if place == 0 else {})},
            {"triggers": n_triggers, "marker": marker, "chain": chain},
            attention=None
            if (n_triggers, place, chain) == (self.n_triggers, 0, 0)
            else self._controls,
        )


class BackcopyStudy(RecallStudy):
    """Attention sinks where they form."""

    name = "backcopy"
    about = "Where an attention sink forms, which attention prevents it, and at what cost?"
    Settings = BackcopySweep
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "excess": Quantity("lower", "nats per token", "loss above the least that can be had"),
        "excess_copy": Quantity("lower", "nats per token", "the same after triggers"),
        "copied": share("right answers after triggers"),
        "share": Quantity(
            "lower", "%", "share of a row's mass on the first key, rows after the first", SHARE
        ),
        "uniform_share": Quantity("none", "%", "the same of uniform attention"),
        "share_idle": Quantity(
            "none", "%", "the same in rows of ordinary symbols, which need no other key", SHARE
        ),
        "share_copying": Quantity("none", "%", "the same in rows of triggers", SHARE),
        "sink": Quantity("lower", "%", "mean weight on the first key, all rows"),
        "uniform": Quantity("none", "%", "the same of uniform attention"),
        "density": Quantity("none", "%", "mean mass on the other keys"),
        "missing": Quantity("none", "%", "mass that rows after the first lack to 100"),
        "missing_idle": Quantity("none", "%", "the same in rows of ordinary symbols"),
        "missing_copying": Quantity("none", "%", "the same in rows of triggers"),
        "zeros": Quantity(
            "none", "%", "share of visible keys whose weight is exactly 0", bounds=SHARE
        ),
        "entropy": Quantity("none", "nats", "mean entropy of a row"),
        "received": Quantity(
            "none", "%", "share of a row's mass on the marker, of the rows after it", SHARE
        ),
        "uniform_received": Quantity("none", "%", "the same of uniform attention"),
        "norm_v": Quantity("none", "", "norm of the first value by the mean of the others"),
        "tau": Quantity("none", "", "learned offset, mean over heads"),
        **METRICS,
    }
    keys = ("variant",)
    cells = deferred("benchmarks.recall.backcopy_cells:cells")

    def headline(self, results: Sequence[Result]) -> Headline | None:
        """Return the weight on the first key of all variants; none of controls."""
        mine = asked(results)
        if not mine:
            return None
        caption, axis = "Mean weight on the first key.", "weight on the first key, %"
        return Headline("sink", "sink", caption, axis, mine[0].value("uniform"), "uniform")

    def all_at_once(self, results: Sequence[Result]) -> Compared:
        """Compare the variants that were trained, at once."""
        return super().all_at_once(asked(results))

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the weight on the first key of all variants."""
        return super().figures(asked(results), out)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return tables of the losses, of the attention, of other arms, and of controls."""
        return backcopy_report.tables(self, best(results))

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Say whether softmax has a sink, who has less, what it costs, and what it takes."""
        return backcopy_report.sentences(best(results))


STUDY = BackcopyStudy()
