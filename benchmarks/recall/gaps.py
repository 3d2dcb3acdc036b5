"""Gaps between the tokens that a row shows and its queries: small ones are likely, as in text."""

from __future__ import annotations

import numpy as np

from benchmarks.recall.measures import Integers


def draw_gaps(rng: np.random.Generator, places: int, power: float, n: int) -> Integers:
    """Draw n different gaps g below places, one after the other with p(g) ∝ (g + 1)^(power - 1)."""
    # An exponential race: g arrives at rate p(g), so the order of arrival is that of draws.
    arrivals = rng.standard_exponential(places) * np.arange(1, places + 1) ** (1 - power)
    return np.argsort(arrivals)[:n]
