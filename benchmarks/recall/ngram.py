"""The n-gram models of a row, the baselines of counting."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from benchmarks.recall.measures import Integers, Reals
from benchmarks.recall.problem import Problem
from orbits.runs.cell import Outcome

ORDERS, PUBLISHED = (3, 2, 1), "3-gram"
"""Orders of the n-grams that count, and the one that papers have, which figures show."""


def counted(problem: Problem, separator: int, n: int) -> list[Outcome]:
    """Evaluate n-gram models of each of the first test rows of a problem.

    Order 1 knows how often each symbol came and nothing of their order.

    Args:
        problem: A problem of strings.
        separator: The token between strings; larger ones are padding.
        n: Number of rows.
    """
    tokens = problem.examples("test", 0, np.arange(n)).tokens
    outcomes = []
    for order in ORDERS:
        shares = np.zeros((*tokens.shape, problem.vocab_size))
        shares[..., :separator] = ngram_distributions(tokens, separator, order)
        metrics = problem.measure(shares.argmax(axis=-1), "test", 0, "")
        metrics |= problem.measure_distributions(shares, "test", 0, "")
        outcomes.append(Outcome(metrics, variant=f"{order}-gram"))
    return outcomes


def ngram_distributions(tokens: Integers, separator: int, n: int = 3) -> Reals:
    """Return the distributions of an n-gram model that counts within the row, up to each position.

    A symbol has the share in which it has followed the last n - 1 symbols of the present string;
    where nothing has, the last n - 2, and so on down to the shares of symbols. A string's beginning
    counts as a symbol, the end of strings does not. Source: ngram.py of berlino/seq_icl, but for
    its smoothing, which mixes in lower orders.

    Args:
        tokens: Rows, [N, L].
        separator: The token between strings; larger ones are padding.
        n: Order, at least 1.

    Returns:
        Shares of the symbols, [N, L, separator]; 0 in padding.

    Raises:
        ValueError: The order is below 1.
    """
    if n < 1:
        raise ValueError(f"the order n must be at least 1, got {n}")
    shares = np.zeros((*tokens.shape, separator))
    start = (separator,) * (n - 1)
    for row, text in enumerate(tokens.tolist()):
        counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        context = start
        for position, token in enumerate(text):
            if token > separator:
                break
            if token == separator:
                context = start
            else:
                for k in range(n):
                    counts[context[k:]][token] += 1
                context = (*context, token)[1:]
            seen = next(counts[context[k:]] for k in range(n) if context[k:] in counts)
            shares[row, position, list(seen)] = list(seen.values())
            shares[row, position] /= seen.total()
    return shares
