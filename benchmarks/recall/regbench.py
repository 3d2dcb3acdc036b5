"""RegBench: infer a random regular language from a few of its strings, and continue them.

Akyürek et al., "In-Context Language Learning" (arXiv:2401.12973); ZeroS (2025), Figure 2.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from benchmarks.recall.automata import Automaton, AutomatonSampler, allowed_symbols
from benchmarks.recall.base import METRICS, Headline, RecallStudy, share
from benchmarks.recall.measures import IGNORE, Integers, Reals, right_by_row
from benchmarks.recall.ngram import ngram_distributions
from benchmarks.recall.problem import Examples, Problem, generators, row_numbers
from benchmarks.recall.sweep import Exercise, Sweep
from benchmarks.study import MEASUREMENT
from orbits.runs.cell import Cell, Outcome
from orbits.runs.result import Case, Metric, Quantity, Result

ORDERS, COUNTED = (3, 2, 1), "3-gram"
"""Orders of the n-grams that count, and the one that figures show."""


@dataclass(frozen=True)
class RegBench(Problem):
    """Predict the next symbol of strings that one hidden automaton has written.

    Each row has an automaton of its own: 4 to 12 states, an alphabet of 4 to 18 of the 18 symbols,
    and 1 to 3 edges at each state, with different symbols, to different other states. It is
    minimised, and writes 10 to 19 strings of 1 to 49 symbols: from state 0, each edge of the
    present state is equally likely. The strings are joined by the separator ``n_symbols`` and
    padded on the right with ``n_symbols`` + 1. Every symbol but the row's first is asked for;
    separators and padding are not.

    Measures: the share of answers that the automaton allows, which knowing the automaton makes 1;
    and the total variation between the model's distribution of the next symbol and the
    automaton's, 0 to 1, which sees a model that knows one allowed symbol and not the others.
    Beside a model's figures stand those of :mod:`benchmarks.recall.ngram`.

    Source: Akyürek et al., "In-Context Language Learning" (arXiv:2401.12973); berlino/seq_icl
    9b9223d, src/dataloaders/dfa.py. Its automata are meant to be unique, but have a hash without
    an equality, so that none is ever found twice and the same one may be trained and tested on;
    and they are kept in a set, whose order changes with PYTHONHASHSEED. Here a minimal automaton
    is equal to another if their languages are; row i of a split has the i-th different automaton
    drawn for it; and a language's SHA-256 decides its split (half to ``train``, a quarter each to
    ``val`` and ``test``), so no language is in two splits, whatever the seeds and settings. Row i
    draws the automata before it once in each process, about 0.3 ms each.

        >>> problem = RegBench(min_strings=3, max_strings=3, max_length=4)
        >>> rows = problem.examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [10, 3, 7, 3, 18, 10, 3, 8, 18, 19, 19, 19, 19]
        >>> rows.targets[0].tolist()
        [3, 7, 3, -100, 10, 3, 8, -100, 10, -100, -100, -100, -100]
        >>> problem.automata("test", 0, np.arange(1))[0].edges
        (((10, 1),), ((3, 2),), ((7, 1), (8, 0), (14, 3)), ((9, 1),))

    Attributes:
        n_symbols: Symbols are 0 .. n_symbols - 1.
        min_symbols: Smallest alphabet.
        min_states: Fewest states, before minimisation.
        max_states: Most states, before minimisation.
        max_edges: Most edges at a state: 3 in the published code, 4 in the paper, and always fewer
            than states.
        min_strings: Fewest strings in a row.
        max_strings: Most strings in a row.
        max_length: Most symbols in a string.

    Raises:
        ValueError: A setting is bad; the message names it.
    """

    stream: ClassVar[str] = "regbench"
    padded: ClassVar[bool] = True
    weighs: ClassVar[bool] = True
    n_symbols: int = 18
    min_symbols: int = 4
    min_states: int = 4
    max_states: int = 12
    max_edges: int = 3
    min_strings: int = 10
    max_strings: int = 19
    max_length: int = 49

    def __post_init__(self) -> None:
        _ = self.sampler  # refuses bad automata
        if not 1 <= self.min_strings <= self.max_strings:
            raise ValueError(
                f"min_strings must be in [1, max_strings {self.max_strings}], "
                f"got {self.min_strings}"
            )
        if self.max_length < 1 or self.seq_len < 1:
            raise ValueError(
                f"max_length must leave something to predict in {self.max_strings} strings, "
                f"got {self.max_length}"
            )

    @property
    def vocab_size(self) -> int:
        """The symbols, the separator and the padding."""
        return self.n_symbols + 2

    @property
    def seq_len(self) -> int:
        """Tokens of the longest row without its last, which is only predicted."""
        return self.max_strings * (self.max_length + 1) - 2

    @property
    def sampler(self) -> AutomatonSampler:
        """The distribution of the automata, before minimisation."""
        return AutomatonSampler(
            self.n_symbols, self.min_symbols, self.min_states, self.max_states, self.max_edges
        )

    def automata(self, split: str, seed: int, indices: npt.ArrayLike) -> list[Automaton]:
        """Return the minimal automaton of each row.

        Raises:
            ValueError: Unknown split, a seed or index out of range, or the settings do not allow
                that many different automata.
        """
        rows = row_numbers(indices)
        known, more = _drawn(self.sampler, split, seed)
        known += islice(more, max(0, 1 + max(rows, default=-1) - len(known)))
        if len(known) <= max(rows, default=-1):
            raise ValueError(
                f"split {split} has {len(known)} different automata at {self}; "
                f"ask for lower indices than {max(rows)} or allow more states or symbols"
            )
        return [known[row] for row in rows]

    def examples(self, split: str, seed: int, indices: npt.ArrayLike) -> Examples:
        """Return one row per index; see :class:`benchmarks.recall.problem.Problem`."""
        streams = generators(self.stream, split, seed, indices)
        automata = self.automata(split, seed, indices)
        tokens = np.full((len(automata), self.seq_len), self.n_symbols + 1)
        targets = np.full_like(tokens, IGNORE)
        for row, (rng, automaton) in enumerate(zip(streams, automata, strict=True)):
            text = self._text(rng, automaton)
            tokens[row, : len(text) - 1] = text[:-1]
            targets[row, : len(text) - 1] = np.where(text[1:] == self.n_symbols, IGNORE, text[1:])
        return Examples(tokens, targets)

    def _text(self, rng: np.random.Generator, automaton: Automaton) -> Integers:
        """Draw the strings of a row, joined by the separator."""
        n_strings = rng.integers(self.min_strings, self.max_strings + 1)
        lengths = rng.integers(1, self.max_length + 1, size=n_strings).tolist()
        picks = iter(rng.random(sum(lengths)).tolist())
        written: list[int] = []
        for length in lengths:
            state = 0
            for pick in islice(picks, length):
                edges = automaton.edges[state]
                symbol, state = edges[int(pick * len(edges))]
                written.append(symbol)
            written.append(self.n_symbols)
        return np.array(written[:-1])

    def measure(self, answers: Integers, split: str, seed: int, at: str) -> dict[str, Metric]:
        """Return the shares of answers that the automaton allows, and that equal the next symbol.

        See :meth:`benchmarks.recall.problem.Problem.measure`.

        Raises:
            ValueError: The answers do not have the shape of the rows.
        """
        indices = np.arange(len(answers))
        rows = self.examples(split, seed, indices)
        if answers.shape != rows.tokens.shape:
            raise ValueError(f"answers have shape {answers.shape}, the rows {rows.tokens.shape}")
        automata = self.automata(split, seed, indices)
        allowed = allowed_symbols(rows.tokens, automata, self.n_symbols)
        asked = rows.targets != IGNORE
        # Over all positions together, as in _get_dfa_accuracy of berlino/seq_icl.
        right = allowed[asked][np.arange(np.count_nonzero(asked)), answers[asked]].mean()
        return {
            "dfa_accuracy": Metric(100 * float(right), n=len(answers)),
            "accuracy": Metric.mean(100 * right_by_row(answers, rows.targets)),
        }

    def measure_distributions(
        self, shares: Reals, split: str, seed: int, at: str
    ) -> dict[str, Metric]:
        """Return the total variation to the automaton's distribution, over all that is asked.

        See :meth:`benchmarks.recall.problem.Problem.measure_distributions`. Each edge of the
        present state is equally likely; that a string ends is not asked for.
        """
        indices = np.arange(len(shares))
        rows, automata = self.examples(split, seed, indices), self.automata(split, seed, indices)
        asked = rows.targets != IGNORE
        allowed = allowed_symbols(rows.tokens, automata, self.n_symbols)[asked]
        true = allowed / allowed.sum(axis=1, keepdims=True)
        distance = 0.5 * np.abs(shares[asked] - true).sum(axis=1)
        return {"distance": Metric(float(distance.mean()), n=len(shares))}


PROBLEM = RegBench


@functools.lru_cache(maxsize=16)
def _drawn(
    sampler: AutomatonSampler, split: str, seed: int
) -> tuple[list[Automaton], Iterator[Automaton]]:
    """Return the list of automata drawn for a split, and the iterator of further ones."""
    (rng,) = generators("regbench.automata", split, seed, [0])
    return [], (a for a in sampler.distinct(rng) if _split(a) == split)


def _split(automaton: Automaton) -> str:
    return ("train", "train", "val", "test")[automaton.digest()[0] % 4]


@dataclass(frozen=True)
class Languages(Sweep):
    """Settings of models and of their languages.

    Attributes:
        head_dim: Channels per head.
        n_train: Number of automata to train on; None for new ones at every step.
        n_symbols: Symbols of all languages together.
        max_states: Most states of an automaton.
        min_strings: Fewest strings in a row.
        max_strings: Most strings in a row.
        max_length: Most symbols in a string.
        max_edges: Most edges at a state: 3 in the published code, 4 in the paper.
    """

    head_dim: int = 64
    n_train: int | None = None
    n_symbols: int = 18
    max_states: int = 12
    min_strings: int = 10
    max_strings: int = 19
    max_length: int = 49
    max_edges: int = 3

    @property
    def problem(self) -> RegBench:
        """The problem of these settings."""
        return RegBench(
            n_symbols=self.n_symbols,
            max_states=self.max_states,
            min_strings=self.min_strings,
            max_strings=self.max_strings,
            max_length=self.max_length,
            max_edges=self.max_edges,
        )

    def exercises(self) -> Iterator[Exercise]:
        """Yield the exercise."""
        yield Exercise(self.problem, self.head_dim, self.n_train, {"": self.problem})


def count(problem_args: dict[str, int], n_test: int) -> list[Outcome]:
    """Evaluate n-gram models of each row, the baselines of counting; order 3 is the published one.

    Order 1 knows how often each symbol came and nothing of their order.
    """
    problem = RegBench(**problem_args)
    tokens = problem.examples("test", 0, np.arange(n_test)).tokens
    outcomes = []
    for order in ORDERS:
        shares = np.zeros((*tokens.shape, problem.vocab_size))
        shares[..., : problem.n_symbols] = ngram_distributions(tokens, problem.n_symbols, order)
        metrics = problem.measure(shares.argmax(axis=-1), "test", 0, "")
        metrics |= problem.measure_distributions(shares, "test", 0, "")
        outcomes.append(Outcome(metrics, variant=f"{order}-gram"))
    return outcomes


class RegBenchStudy(RecallStudy):
    """In-context language learning."""

    name = "regbench"
    version = 4
    about = "Does a model infer, from a few strings, which symbols may follow?"
    Settings = Languages
    metrics: ClassVar = {
        "dfa_accuracy": share("answers that the automaton allows"),
        "accuracy": share("answers that are the symbol that came"),
        "distance": Quantity(
            "lower",
            "",
            "total variation to the automaton's distribution of the next symbol",
            (0, 1),
        ),
        **METRICS,
    }
    keys = ("variant", "lr")

    def cells(self, settings: Languages) -> list[Cell]:
        """Return one cell per model, rate and seed, and one of counting."""
        known = settings.problem.to_json()["problem_args"]
        arguments = {"problem_args": known, "n_test": settings.n_test}
        case = Case(self.name, MEASUREMENT, COUNTED)
        return [*super().cells(settings), Cell(count, case, arguments)]

    def headline(self, results: Sequence[Result]) -> Headline:
        """Return the DFA accuracy of every model beside the 3-gram's."""
        counts = (x.value("dfa_accuracy") for x in results if x.case.variant == COUNTED)
        counted = next(counts, None)
        caption = "Answers that the automaton allows, beside those of a 3-gram of the row."
        metric = "dfa_accuracy"
        return Headline(
            metric, metric, caption, "allowed answers, %", counted, "counting 3-grams of the row"
        )


STUDY = RegBenchStudy()
