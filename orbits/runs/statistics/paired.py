"""Comparisons of rows that share seeds: by pairs, corrected for their number, or all at once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from orbits.runs.statistics.interval import Interval
from orbits.runs.statistics.trainings import MINIMUM_SEEDS, over_seeds

LEVEL = 0.05
"""Largest probability that a family of comparisons claims a difference where there is none."""

ROUNDING = 1e-12
"""Spread of differences, as a share of the values, below which it is that of rounded numbers."""

RESAMPLES = 4999
"""Permutations behind a p value of all rows at once; the least is 1 in 5,000."""

Key = TypeVar("Key", bound=Hashable)
Seeds = Mapping[int | None, float]
"""The values of a row by the seed of its training."""


@dataclass(frozen=True)
class Comparison:
    """The difference of two rows over the seeds that they share.

    Attributes:
        difference: Its mean and 95% interval by Student's t, for this comparison alone.
        p: The p value that belongs to this interval.
        adjusted: The p value after Holm's correction for the family.
        seeds: Number of shared seeds.
    """

    difference: Interval
    p: float
    adjusted: float
    seeds: int

    @property
    def differs(self) -> bool:
        """Whether a difference is claimed, which happens by chance in 5% of families at most."""
        return self.adjusted < LEVEL


def paired(one: Seeds, other: Seeds) -> Comparison | None:
    """Compare two rows by the differences ``one - other`` of the seeds that they share.

    Returns:
        A family of one. None with fewer than :data:`MINIMUM_SEEDS` shared seeds, or where a value
        is not finite.
    """
    both = [(value, other[seed]) for seed, value in one.items() if seed in other]
    differences = [value - against for value, against in both]
    if len(differences) < MINIMUM_SEEDS or not all(map(math.isfinite, differences)):
        return None
    from scipy.stats import t  # half a second that --help does not need

    n, interval = len(differences), over_seeds(differences)
    error = float(np.std(differences, ddof=1)) / n**0.5
    rounding = ROUNDING * float(np.abs(both).max())
    if error > rounding:
        p = float(2 * t.sf(abs(interval.value) / error, n - 1))
    else:  # one function under two names, or equal shifts, of which only the sign is a surprise
        p = 1.0 if abs(interval.value) <= rounding else 2.0 ** (1 - n)
    return Comparison(interval, p, p, n)


def compare(pairs: Mapping[Key, tuple[Seeds, Seeds]]) -> dict[Key, Comparison]:
    """Compare the pairs of a family: all that are looked at in one metric of one table.

    Args:
        pairs: The values of both rows of each pair.

    Returns:
        Comparisons whose p values are corrected for their number; pairs that cannot be compared
        (:func:`paired`) are left out and do not count.
    """
    found = {key: each for key, pair in pairs.items() if (each := paired(*pair)) is not None}
    adjusted = holm([each.p for each in found.values()])
    return {
        key: Comparison(each.difference, each.p, p, each.seeds)
        for (key, each), p in zip(found.items(), adjusted, strict=True)
    }


def all_at_once(rows: Sequence[Seeds]) -> float | None:
    """Return the p value of no difference between any of several rows that share seeds.

    Friedman's test (1937, J. Am. Stat. Assoc. 32, 675): rows are ranked within each seed, and the
    spread of their mean ranks is compared with that of ranks permuted within each seed, all
    permutations or :data:`RESAMPLES` of them, since the usual approximation by chi squared is poor
    with few seeds. It sees what no pair shows after correction, and does not say which rows differ.
    Of four to twelve normal rows with equal means and three to five seeds, one with ten times the
    others' spread makes it claim a difference in 6 to 7% of simulations; the spread of means
    themselves would in 17 to 22%, and finds a real one in 62% where ranks do in 55% (half of six
    rows apart by 1.3 standard deviations, five seeds).

    Args:
        rows: The values of each row by the seed of its training.

    Returns:
        The p value, at least :func:`least_p` of the rows; None with fewer than three rows or
        :data:`MINIMUM_SEEDS` seeds that all of them have, or where a value is not finite.
    """
    ranks = ranked(rows)
    if ranks is None:
        return None
    from scipy.stats import permutation_test

    def spread(*by_seed: Any, axis: int) -> Any:
        return np.var(np.mean(by_seed, axis=0), axis=axis)

    found = permutation_test(
        tuple(ranks.T),
        spread,
        permutation_type="pairings",
        alternative="greater",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def least_p(rows: Sequence[Seeds]) -> float | None:
    """Return the least p value that :func:`all_at_once` can give with the values of some rows.

    The spread is largest where all seeds put the rows in one order, which happens in k! of the
    (k!)^S permutations of k rows and S seeds: without ties the least is (1 / k!)^(S - 1), 0.028 of
    three rows with three seeds; ties raise it. Where permutations are drawn it is at least
    1 / 5,000. It depends on the values of each seed alone, and not on whose they are.

    Args:
        rows: The values of each row by the seed of its training.

    Returns:
        The p value; None where the rows cannot be compared.
    """
    ranks = ranked(rows)
    if ranks is None:
        return None
    in_order = np.sort(ranks, axis=0)
    # Permutations that change nothing: of rows that are equal in all seeds, and in one.
    in_all = math.factorial(len(rows))
    orders = Fraction(in_all, _repeats(in_order))
    total = math.prod(Fraction(in_all, _repeats(seed[:, None])) for seed in in_order.T)
    exact = math.factorial(len(rows)) ** ranks.shape[1] <= RESAMPLES
    least = float(orders / total)
    return least if exact else max(least, 1 / (RESAMPLES + 1))


def reachable(least: Sequence[float]) -> list[bool]:
    """Return which tests of a family can fall below :data:`LEVEL` after Holm's correction.

    The others are left out of the family and of its correction, which keeps the level, since the
    least p value of a test says nothing of its outcome. Tarone (1990), Biometrics 46, 515.

    Args:
        least: The least p value that each test can give (:func:`least_p`).
    """
    for number in range(1, len(least) + 1):
        found = [p * number < LEVEL for p in least]
        if sum(found) <= number:
            return found
    return []


def ranked(rows: Sequence[Seeds]) -> npt.NDArray[np.float64] | None:
    """Return the ranks of rows within each seed that all of them have, [rows, seeds].

    Equal values share the mean of their ranks.

    Args:
        rows: The values of each row by the seed of its training.

    Returns:
        The ranks; None with fewer than three rows or :data:`MINIMUM_SEEDS` seeds that all of them
        have, or where a value is not finite.
    """
    common = [seed for seed in rows[0] if all(seed in row for row in rows)] if rows else []
    values = np.array([[row[seed] for seed in common] for row in rows], np.float64)
    if len(rows) < 3 or len(common) < MINIMUM_SEEDS or not np.all(np.isfinite(values)):
        return None
    from scipy.stats import rankdata

    return rankdata(values, axis=0)


def _repeats(values: npt.NDArray[np.float64]) -> int:
    """Return the number of permutations of rows [R, k] that change nothing."""
    _, counts = np.unique(values, axis=0, return_counts=True)
    return math.prod(math.factorial(int(count)) for count in counts)


def holm(p: Sequence[float]) -> list[float]:
    """Return p values corrected for their number by Holm (1979).

    Whatever their dependence, the smallest of true null hypotheses is below 0.05 in at most 5%.
    """
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(each) for each in adjusted]
