"""Rank correlations, with exact p values, of a backbone's properties with its score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.few_labels.scores import WITH, Group, backbones
from orbits.runs.result import Result

EXACT = 9
"""Pairs up to which a p is exact; that of more is Student's t approximation."""


class Correlation(NamedTuple):
    """Spearman's rank correlation.

    Attributes:
        rho: From -1 to 1.
        p: Two-sided: the share of all orders whose correlation is at least as large in size.
        n: Number of pairs.
    """

    rho: float
    p: float
    n: int


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> Correlation | None:
    """Return Spearman's correlation with an exact p, which n pairs cannot make less than 2 / n!.

    Returns:
        The correlation; None with fewer than three pairs, or where one side is constant.

    Raises:
        ValueError: The lengths differ.
    """
    n = len(x)
    if n != len(y):
        raise ValueError(f"x and y must have the same length, got {n} and {len(y)}")
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    rho, p = stats.spearmanr(x, y)
    if n <= EXACT:
        one, other = (ranks - ranks.mean() for ranks in map(stats.rankdata, (x, y)))

        def statistic(order: npt.NDArray, axis: int) -> npt.NDArray:
            return np.round(np.sum(order * other, axis=axis), 9)  # so that equal orders tie

        p = stats.permutation_test(
            (one,), statistic, permutation_type="pairings", n_resamples=np.inf, vectorized=True
        ).pvalue
    return Correlation(float(rho), float(p), n)


def correlations(
    found: Iterable[Group], results: Sequence[Result]
) -> list[tuple[Group, str, Correlation]]:
    """Return the rank correlation of each measure of the backbones with their mean R2.

    Only fine-tuning with re-weighting counts, where some fail: a family as small as it can be.
    """
    measured = backbones(results)
    tested = []
    for group in (group for group in found if group.arm == WITH):
        means = group.means()
        known = {seed: measured.get((group.variant, seed), {}) for seed in means}
        for measure in dict.fromkeys(name for each in known.values() for name in each):
            seeds = [seed for seed in means if measure in known[seed]]
            each = rank_correlation(
                [known[seed][measure] for seed in seeds], [means[seed] for seed in seeds]
            )
            if each is not None:
                tested.append((group, measure, each))
    return tested
