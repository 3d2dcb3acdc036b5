"""Random regular languages: finite automata all of whose states accept, and their strings."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from benchmarks.recall.measures import Integers
from benchmarks.recall.problem import generators, row_numbers

Edges = tuple[tuple[int, int], ...]
"""Edges from one state: (symbol, next state), in the order of the symbols."""


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton that starts in state 0 and accepts as long as it has an edge.

    Attributes:
        edges: The edges of each state. Two automata are equal if these are.
    """

    edges: tuple[Edges, ...]

    def minimal(self) -> Automaton:
        """Return the automaton of the same language with the fewest states, in canonical order.

        States are told apart by ever longer strings (Moore 1956) until nothing changes; the result
        is the one that Hopcroft's algorithm has too, as there is only one. Then the states that
        can be reached are numbered breadth first, by symbol. So two automata have the same
        language if and only if their minimal forms are equal.
        """
        group = [0] * len(self.edges)
        while True:
            # Groups told apart by strings of length k + 1 refine those of length k.
            views = [tuple((symbol, group[to]) for symbol, to in edges) for edges in self.edges]
            number = {view: i for i, view in enumerate(dict.fromkeys(views))}
            if len(number) == len(set(group)):
                break
            group = [number[view] for view in views]
        first = {group[0]: 0}  # a state of each group that is reached, in order
        for state in (queue := [0]):
            for _, to in self.edges[state]:
                if group[to] not in first:
                    first[group[to]] = to
                    queue.append(to)
        order = {g: i for i, g in enumerate(first)}
        return Automaton(
            tuple(
                tuple((symbol, order[group[to]]) for symbol, to in self.edges[state])
                for state in first.values()
            )
        )

    def digest(self) -> bytes:
        """Return the SHA-256 of the edges: the same in every process and on every machine."""
        return hashlib.sha256(repr(self.edges).encode()).digest()


@dataclass(frozen=True)
class Languages:
    """Random languages, and strings that show one; all numbers are drawn uniformly.

    A language is that of an automaton with different symbols at the edges of a state, to different
    other states. The published code (berlino/seq_icl 9b9223d, src/dataloaders/dfa.py) means its
    automata to be unique, but gives them a hash without an equality, so that none is ever found
    twice and the same one may be trained and tested on; and it keeps them in a set, whose order
    changes with PYTHONHASHSEED. Here automata are equal if their languages are, and a language's
    SHA-256 decides its split (half to ``train``, a quarter each to ``val`` and ``test``), so that
    none is in two splits, whatever the seeds and sizes.

    Attributes:
        n_symbols: Symbols of all languages together, 0 .. n_symbols - 1.
        min_symbols: Smallest alphabet of a language; the largest has all symbols.
        min_states: Fewest states of an automaton, before minimisation.
        max_states: Most states of an automaton, before minimisation.
        max_edges: Most edges at a state: 3 in the published code, 4 in the paper, and always fewer
            than states.
        min_strings: Fewest strings in a row.
        max_strings: Most strings in a row.
        max_length: Most symbols in a string.

    Raises:
        ValueError: A size is bad; the message names it.
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
        if self.max_edges < 1:
            raise ValueError(f"max_edges must be at least 1, got {self.max_edges}")
        if not self.max_edges <= self.min_symbols <= self.n_symbols:
            raise ValueError(
                f"min_symbols must be in [max_edges {self.max_edges}, n_symbols "
                f"{self.n_symbols}], got {self.min_symbols}"
            )
        if not 2 <= self.min_states <= self.max_states:
            raise ValueError(
                f"min_states must be in [2, max_states {self.max_states}], got {self.min_states}"
            )
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

    def automata(self, split: str, seed: int, indices: npt.ArrayLike) -> list[Automaton]:
        """Return the minimal automaton of each row: row i has the i-th different one of its split.

        The automata before it are drawn once in each process, about 0.3 ms each.

            >>> Languages().automata("test", 0, [0])[0].edges
            (((10, 1),), ((3, 2),), ((7, 1), (8, 0), (14, 3)), ((9, 1),))

        Raises:
            ValueError: Unknown split, a seed or index out of range, or the sizes do not allow that
                many different automata.
        """
        rows = row_numbers(indices)
        known, more = _drawn(self, split, seed)
        known += islice(more, max(0, 1 + max(rows, default=-1) - len(known)))
        if len(known) <= max(rows, default=-1):
            raise ValueError(
                f"split {split} has {len(known)} different automata at {self}; "
                f"ask for lower indices than {max(rows)} or allow more states or symbols"
            )
        return [known[row] for row in rows]

    def text(self, rng: np.random.Generator, automaton: Automaton) -> Integers:
        """Draw the strings of a row, joined by the separator, the token ``n_symbols``.

        Each begins in state 0, and each edge of the present state is equally likely.
        """
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

    def draw(self, rng: np.random.Generator) -> Automaton:
        """Return a random automaton: different symbols and targets at each state, no self-loop."""
        n_states = int(rng.integers(self.min_states, self.max_states + 1))
        size = int(rng.integers(self.min_symbols, self.n_symbols + 1))
        alphabet = rng.permutation(self.n_symbols)[:size]
        n_edges = rng.integers(1, min(self.max_edges, n_states - 1) + 1, size=n_states).tolist()
        symbols = rng.permuted(np.tile(alphabet, (n_states, 1)), axis=1).tolist()
        others = rng.permuted(np.tile(np.arange(n_states - 1), (n_states, 1)), axis=1)
        targets = (others + (others >= np.arange(n_states)[:, None])).tolist()  # skip the state
        return Automaton(
            tuple(
                tuple(sorted(zip(symbols[state][:k], targets[state][:k], strict=True)))
                for state, k in enumerate(n_edges)
            )
        )

    def distinct(self, rng: np.random.Generator) -> Iterator[Automaton]:
        """Yield random minimal automata, no two with the same language.

        They end when 1,000 draws in a row have brought nothing new.
        """
        seen: set[Automaton] = set()
        draws = 0
        while draws < 1000:
            automaton = self.draw(rng).minimal()
            draws += 1
            if automaton not in seen:
                seen.add(automaton)
                draws = 0
                yield automaton


@functools.lru_cache(maxsize=16)
def _drawn(
    languages: Languages, split: str, seed: int
) -> tuple[list[Automaton], Iterator[Automaton]]:
    """Return the list of automata drawn for a split, and the iterator of further ones."""
    (rng,) = generators("regbench.automata", split, seed, [0])
    return [], (a for a in languages.distinct(rng) if _split(a) == split)


def _split(automaton: Automaton) -> str:
    return ("train", "train", "val", "test")[automaton.digest()[0] % 4]


def allowed_symbols(
    tokens: Integers, automata: Sequence[Automaton], n_symbols: int
) -> npt.NDArray[np.bool_]:
    """Return the tokens that each row's automaton allows after each position, [N, L, V].

    After the separator, the token ``n_symbols``, it is back in state 0. Separator and padding,
    which are the last two of the vocabulary, are never allowed.
    """
    allowed = np.zeros((*tokens.shape, n_symbols + 2), bool)
    for row, text, automaton in zip(allowed, tokens.tolist(), automata, strict=True):
        following = [dict(edges) for edges in automaton.edges]
        state = 0
        for position, token in enumerate(text):
            if token > n_symbols:
                break
            state = 0 if token == n_symbols else following[state][token]
            row[position, list(following[state])] = True
    return allowed
