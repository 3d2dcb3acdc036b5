"""Every interval holds the truth in 92 to 98% of simulations whose truth is known."""

import numpy as np
import pytest
from scipy.stats import binom

from orbits.runs.statistics import (
    bootstrap,
    median,
    over_seeds,
    power_law,
    wilson,
    within_slope,
)


def coverage(interval, truth, times):
    """Return how often, in %, an interval from a generator holds the truth."""
    generators = (np.random.default_rng([7, number]) for number in range(times))
    found = [interval(rng) for rng in generators]
    return 100 * np.mean([low <= truth <= high for _, low, high in found])


def mean_of(sums):
    return sums[..., 0] / sums[..., 1]


@pytest.mark.parametrize("n", [3, 5])
def test_students_t_is_over_trainings_on_their_test_set(n):
    assert 92 < coverage(lambda rng: over_seeds(rng.normal(2, 0.1, n)), 2, 1000) < 98


@pytest.mark.full
def test_means_over_groups_of_different_sizes():
    def interval(rng):
        sizes = rng.integers(1, 9, 200)
        sums = np.stack([sizes * rng.normal(3, 1, 200), sizes], axis=-1)
        return bootstrap(sums, mean_of, n_boot=200)

    assert 92 < coverage(interval, 3, 400) < 98


@pytest.mark.full
def test_shares_of_variance():
    def interval(rng):
        sums = np.stack([rng.chisquare(4, 200), rng.chisquare(4, 200) * 10], axis=-1)
        return bootstrap(sums, lambda s: 1 - s[..., 0] / s[..., 1], n_boot=200)

    assert 92 < coverage(interval, 0.9, 400) < 98


@pytest.mark.full
def test_medians():
    assert 92 < coverage(lambda rng: median(rng.normal(3, 1, (61, 2)), 300), 3, 400) < 98


def points(rng, n_groups=200, length=4):
    """Return inputs, values and groups of a power law whose errors are shared by a group."""
    groups = np.repeat(np.arange(n_groups), length)
    mass = np.exp(rng.normal(0, 1, n_groups)).repeat(length)
    inputs = np.column_stack([np.exp(rng.normal(0, 0.5, len(groups))), mass])
    error = rng.normal(0, 0.3, n_groups).repeat(length) + rng.normal(0, 0.1, len(groups))
    return inputs, 7 * inputs[:, 0] ** -1.8 * mass**0.7 * np.exp(error), groups


@pytest.mark.full
@pytest.mark.parametrize(("place", "truth"), [(0, -1.8), (1, 0.7), (2, 7)])
def test_exponents_and_the_constant(place, truth):
    def interval(rng):
        fit = power_law(*points(rng), n_boot=200)
        return (*fit.exponents, fit.constant)[place]

    assert 92 < coverage(interval, truth, 500) < 98


@pytest.mark.full
def test_slopes_within_groups():
    def interval(rng):
        inputs, values, groups = points(rng)
        return within_slope(np.log(inputs[:, 0]), np.log(values), groups, n_boot=300)

    assert 92 < coverage(interval, -1.8, 400) < 98


@pytest.mark.parametrize("total", [10, 30])
def test_rates_on_average_over_the_true_rate(total):
    counts = np.arange(total + 1)
    low, high = np.transpose([wilson(int(count), total)[1:] for count in counts])
    rates = np.linspace(0.02, 0.98, 97)
    inside = (low <= rates[:, None]) & (rates[:, None] <= high)
    chances = binom.pmf(counts, total, rates[:, None])
    assert 92 < 100 * np.mean(np.sum(chances * inside, axis=1)) < 98
