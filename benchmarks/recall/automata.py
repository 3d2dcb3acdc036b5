"""Finite automata all of whose states accept: random ones, minimal ones, their canonical form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.recall.measures import Integers

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
class AutomatonSampler:
    """The distribution of random automata; all numbers are drawn uniformly.

    Attributes:
        n_symbols: Symbols are 0 .. n_symbols - 1.
        min_symbols: Least size of an automaton's alphabet; the greatest is ``n_symbols``.
        min_states: Fewest states, before minimisation.
        max_states: Most states, before minimisation.
        max_edges: A state has 1 .. ``max_edges`` edges, fewer if there are no more other states.

    Raises:
        ValueError: A setting is bad; the message names it.
    """

    n_symbols: int
    min_symbols: int
    min_states: int
    max_states: int
    max_edges: int

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
