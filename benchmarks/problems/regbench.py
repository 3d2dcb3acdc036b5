"""RegBench: infer a random regular language from a few of its strings, and continue them."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from benchmarks.problems.automata import Automaton, AutomatonSampler
from benchmarks.problems.examples import (
    IGNORE,
    Examples,
    Integers,
    collect,
    generators,
    row_numbers,
)


@dataclass(frozen=True)
class RegBench:
    """Predict the next symbol of strings that one hidden automaton has written.

    Each row has an automaton of its own: 4 to 12 states, an alphabet of 4 to 18 of the 18 symbols,
    and 1 to 3 edges at each state, with different symbols, to different other states. It is
    minimised, and writes 10 to 19 strings of 1 to 49 symbols: from state 0, each edge of the
    present state is equally likely. The strings are joined by the separator ``n_symbols`` and
    padded on the right with ``n_symbols`` + 1. Every symbol but the row's first is asked for;
    separators and padding are not.

    Measure: :func:`dfa_accuracy`. Knowing the automaton gives 1; beside a model's figure stands
    that of :func:`ngram_answers`.

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

    def automata(self, split: str, seed: int, indices: Integers) -> list[Automaton]:
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

    def examples(self, split: str, seed: int, indices: Integers) -> Examples:
        """Return one row per index; see :class:`benchmarks.problems.Problem`."""
        streams = generators("regbench", split, seed, indices)
        automata = iter(self.automata(split, seed, indices))
        separator, padding = self.n_symbols, self.n_symbols + 1

        def row(rng: np.random.Generator) -> tuple[Integers, Integers]:
            edges = next(automata).edges
            n_strings = rng.integers(self.min_strings, self.max_strings + 1)
            lengths = rng.integers(1, self.max_length + 1, size=n_strings).tolist()
            picks = iter(rng.random(sum(lengths)).tolist())
            written: list[int] = []
            for length in lengths:
                state = 0
                for pick in islice(picks, length):
                    symbol, state = edges[state][int(pick * len(edges[state]))]
                    written.append(symbol)
                written.append(separator)
            text = np.array(written[:-1])
            tokens = np.full(self.seq_len, padding)
            targets = np.full(self.seq_len, IGNORE)
            tokens[: len(text) - 1] = text[:-1]
            targets[: len(text) - 1] = np.where(text[1:] == separator, IGNORE, text[1:])
            return tokens, targets

        return collect(streams, row, self.seq_len)


@functools.lru_cache(maxsize=16)
def _drawn(
    sampler: AutomatonSampler, split: str, seed: int
) -> tuple[list[Automaton], Iterator[Automaton]]:
    """Return the automata drawn so far for a split, and those still to come."""
    (rng,) = generators("regbench.automata", split, seed, [0])
    return [], (a for a in sampler.distinct(rng) if _split(a) == split)


def _split(automaton: Automaton) -> str:
    return ("train", "train", "val", "test")[automaton.digest()[0] % 4]


def dfa_accuracy(
    problem: RegBench, split: str, seed: int, indices: Integers, answers: Integers
) -> float:
    """Return the share of answers that the automaton allows after the string so far.

    Counted is each position that asks for a symbol, over all rows together, as in
    ``_get_dfa_accuracy`` of berlino/seq_icl.

    Args:
        problem: What made the rows.
        split: Their split.
        seed: Their seed.
        indices: Their indices, [N].
        answers: The greedy answer at each position, [N, L].

    Raises:
        ValueError: The answers do not have the shape of the rows.
    """
    rows = problem.examples(split, seed, indices)
    if answers.shape != rows.tokens.shape:
        raise ValueError(f"answers have shape {answers.shape}, the rows {rows.tokens.shape}")
    allowed = allowed_symbols(problem, rows.tokens, problem.automata(split, seed, indices))
    asked = rows.targets != IGNORE
    return float(allowed[asked][np.arange(np.count_nonzero(asked)), answers[asked]].mean())


def allowed_symbols(
    problem: RegBench, tokens: Integers, automata: Sequence[Automaton]
) -> npt.NDArray[np.bool_]:
    """Return which tokens each row's automaton allows after each position, [N, L, V].

    After the separator it is back in state 0. Separator and padding are never allowed.
    """
    allowed = np.zeros((*tokens.shape, problem.vocab_size), bool)
    for row, text, automaton in zip(allowed, tokens.tolist(), automata, strict=True):
        following = [dict(edges) for edges in automaton.edges]
        state = 0
        for position, token in enumerate(text):
            if token > problem.n_symbols:
                break
            state = 0 if token == problem.n_symbols else following[state][token]
            row[position, list(following[state])] = True
    return allowed


def ngram_answers(problem: RegBench, tokens: Integers, n: int = 3) -> Integers:
    """Return the answers of an n-gram model that counts within the row, up to each position.

    The answer is what has most often followed the last n - 1 symbols of the present string; where
    nothing has, the last n - 2, and so on down to the most frequent symbol. A string's beginning
    counts as a symbol, the end of strings does not, and of equals the smallest symbol is taken.
    Source: ngram.py of berlino/seq_icl, but for its smoothing, which mixes in lower orders.

    Args:
        problem: What made the rows.
        tokens: Rows, [N, L].
        n: Order, at least 1.

    Raises:
        ValueError: The order is below 1.
    """
    if n < 1:
        raise ValueError(f"the order n must be at least 1, got {n}")
    answers = np.zeros_like(tokens)
    start = (problem.n_symbols,) * (n - 1)
    for row, text in enumerate(tokens.tolist()):
        counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        context = start
        for position, token in enumerate(text):
            if token > problem.n_symbols:
                break
            if token == problem.n_symbols:
                context = start
            else:
                for k in range(n):
                    counts[context[k:]][token] += 1
                context = (*context, token)[1:]
            seen = next(counts[context[k:]] for k in range(n) if context[k:] in counts)
            answers[row, position] = min(seen, key=lambda symbol: (-seen[symbol], symbol))
    return answers
