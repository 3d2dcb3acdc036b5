"""The n-gram model of a row, the baseline of counting."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from benchmarks.recall.measures import Integers, Reals


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
