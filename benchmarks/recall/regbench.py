"""RegBench: infer a random regular language from a few of its strings, and continue them.

Akyürek et al., "In-Context Language Learning" (arXiv:2401.12973); ZeroS (2025), Figure 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from benchmarks.recall import ngram
from benchmarks.recall.automata import Languages, allowed_symbols
from benchmarks.recall.base import METRICS, Headline, RecallStudy, share
from benchmarks.recall.measures import IGNORE, Integers, Reals
from benchmarks.recall.problem import Examples, Problem, generators
from benchmarks.recall.sweep import Exercise, Sweep
from benchmarks.study import MEASUREMENT
from orbits.runs.cell import Cell, Outcome
from orbits.runs.result import Case, Metric, Quantity, Result


@dataclass(frozen=True)
class RegBench(Languages, Problem):
    """Predict the next symbol of strings that one hidden automaton has written.

    Each row has an automaton of its own, and is padded on the right with ``n_symbols`` + 1. Every
    symbol but its first is asked for; separators and padding are not.

    Measures: the share of answers that the automaton allows, which knowing the automaton makes 1;
    and the total variation between the model's distribution of the next symbol and the
    automaton's, 0 to 1, which sees a model that knows one allowed symbol and not the others.

        >>> problem = RegBench(min_strings=3, max_strings=3, max_length=4)
        >>> rows = problem.examples("test", 0, np.arange(1))
        >>> rows.tokens[0].tolist()
        [10, 3, 7, 3, 18, 10, 3, 8, 18, 19, 19, 19, 19]
        >>> rows.targets[0].tolist()
        [3, 7, 3, -100, 10, 3, 8, -100, 10, -100, -100, -100, -100]
    """

    stream: ClassVar[str] = "regbench"
    padded: ClassVar[bool] = True
    weighs: ClassVar[bool] = True

    def examples(self, split: str, seed: int, indices: npt.ArrayLike) -> Examples:
        """Return one row per index; see :class:`benchmarks.recall.problem.Problem`."""
        automata = self.automata(split, seed, indices)
        tokens = np.full((len(automata), self.seq_len), self.n_symbols + 1)
        targets = np.full_like(tokens, IGNORE)
        streams = generators(self.stream, split, seed, indices)
        for row, (rng, automaton) in enumerate(zip(streams, automata, strict=True)):
            text = self.text(rng, automaton)
            tokens[row, : len(text) - 1] = text[:-1]
            targets[row, : len(text) - 1] = np.where(text[1:] == self.n_symbols, IGNORE, text[1:])
        return Examples(tokens, targets)

    def _asked(self, split: str, seed: int, n: int) -> tuple[npt.NDArray[np.bool_], ...]:
        """Return where the first rows ask for a symbol, [n, L], and those allowed there, [., V]."""
        rows = self.examples(split, seed, np.arange(n))
        automata = self.automata(split, seed, np.arange(n))
        asked = rows.targets != IGNORE
        return asked, allowed_symbols(rows.tokens, automata, self.n_symbols)[asked]

    def measure(self, answers: Integers, split: str, seed: int, at: str) -> dict[str, Metric]:
        """Return the shares of answers that the automaton allows, and that are the next symbol."""
        metrics = super().measure(answers, split, seed, at)  # refuses answers of another shape
        asked, allowed = self._asked(split, seed, len(answers))
        # Over all positions together, as in _get_dfa_accuracy of berlino/seq_icl.
        right = allowed[np.arange(len(allowed)), answers[asked]].mean()
        return {"dfa_accuracy": Metric(100 * float(right), n=len(answers)), **metrics}

    def measure_distributions(
        self, shares: Reals, split: str, seed: int, at: str
    ) -> dict[str, Metric]:
        """Return the total variation to the automaton's distribution, over all that is asked."""
        asked, allowed = self._asked(split, seed, len(shares))
        true = allowed / allowed.sum(axis=1, keepdims=True)  # its edges are equally likely
        distance = 0.5 * np.abs(shares[asked] - true).sum(axis=1)
        return {"distance": Metric(float(distance.mean()), n=len(shares))}


PROBLEM = RegBench


@dataclass(frozen=True)
class LanguageSweep(Sweep, Languages):
    """Settings of models and of their languages.

    Attributes:
        head_dim: Channels per head.
        n_train: Number of automata to train on; None for new ones at every step.
    """

    head_dim: int = 64
    n_train: int | None = None

    @property
    def problem(self) -> RegBench:
        """The problem of these settings."""
        return RegBench(**{field.name: getattr(self, field.name) for field in fields(Languages)})

    def exercises(self) -> Iterator[Exercise]:
        """Yield the exercise."""
        yield Exercise(self.problem, self.head_dim, self.n_train, {"": self.problem})


def count(problem_args: dict[str, Any], n_test: int) -> list[Outcome]:
    """Evaluate n-gram models of each row, the baselines of counting."""
    problem = RegBench(**problem_args)
    return ngram.counted(problem, problem.n_symbols, n_test)


class RegBenchStudy(RecallStudy):
    """In-context language learning."""

    name = "regbench"
    version = 4
    about = "Does a model infer, from a few strings, which symbols may follow?"
    Settings = LanguageSweep
    metrics: ClassVar = {
        "dfa_accuracy": share("answers that the automaton allows"),
        "accuracy": share("answers that are the symbol that came"),
        "distance": Quantity(
            "lower", "", "total variation to the automaton's distribution of next symbols", (0, 1)
        ),
        **METRICS,
    }
    keys = ("variant", "lr")

    def cells(self, settings: LanguageSweep) -> list[Cell]:
        """Return one cell per model, rate and seed, and one of counting."""
        arguments = {"problem_args": asdict(settings.problem), "n_test": settings.n_test}
        case = Case(self.name, MEASUREMENT, ngram.PUBLISHED)
        return [*super().cells(settings), Cell(count, case, arguments)]

    def headline(self, results: Sequence[Result]) -> Headline:
        """Return the DFA accuracy of every model beside the 3-gram's."""
        counts = (x.value("dfa_accuracy") for x in results if x.case.variant == ngram.PUBLISHED)
        metric, xlabel = "dfa_accuracy", "allowed answers, %"
        caption = "Answers that the automaton allows."
        named = "counting 3-grams of the row"
        return Headline(metric, metric, caption, xlabel, next(counts, None), named)


STUDY = RegBenchStudy()
