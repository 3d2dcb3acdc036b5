"""Intervals by their definitions and by published values."""

import math

import numpy as np
import pytest

from orbits.runs.statistics import (
    bootstrap,
    mean,
    median,
    over_seeds,
    over_seeds_and_groups,
    power_law,
    r_squared,
    studentized,
    wilson,
    within_slope,
)


def sequences(seed=0, n_groups=30, length=6):
    """Points of groups that share two of the three inputs and an error."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups) * 3, length)
    shared = np.exp(rng.normal(0, 1, (n_groups, 2))).repeat(length, axis=0)
    inputs = np.column_stack([np.exp(rng.normal(0, 0.5, len(groups))), shared])
    error = rng.normal(0, 0.3, n_groups).repeat(length) + rng.normal(0, 0.1, len(groups))
    return inputs, 7 * inputs[:, 0] ** -1.8 * inputs[:, 1] ** 0.7 * np.exp(error), groups


def test_a_power_law_is_that_of_least_squares_on_logarithms():
    inputs, values, groups = sequences()
    fit = power_law(inputs, values, groups)
    design = np.column_stack([np.ones(len(values)), np.log(inputs)])
    constant, *slopes = np.linalg.lstsq(design, np.log(values), rcond=None)[0]
    assert [exponent.value for exponent in fit.exponents] == pytest.approx(slopes)
    assert fit.constant.value == pytest.approx(np.exp(constant))
    assert all(low < value < high for value, low, high in (*fit.exponents, fit.constant))
    assert (fit.n_groups, fit.n_boot) == (30, 2000)


def test_an_order_of_groups_or_a_unit_changes_no_exponent():
    inputs, values, groups = sequences()
    fit = power_law(inputs, values, groups)
    names = np.array([f"sequence {group:03d}" for group in groups])
    assert power_law(inputs, values, names) == fit
    scaled = power_law(inputs * [10, 1e-3, 1], values * 5, groups)
    np.testing.assert_allclose(scaled.exponents, fit.exponents, rtol=1e-9)


def test_a_slope_within_groups_is_that_of_a_level_for_each_group():
    inputs, values, groups = sequences()
    x, y = np.log(inputs[:, 0]), np.log(values)
    levels = (groups[:, None] == np.unique(groups)).astype(float)
    expected = np.linalg.lstsq(np.column_stack([x, levels]), y, rcond=None)[0][0]
    value, low, high = within_slope(x, y, groups)
    assert value == pytest.approx(expected)
    assert low < value < high
    assert within_slope(np.log(inputs[:, 1]), y, groups) is None


def test_groups_of_single_points_say_nothing_of_a_slope_within_groups():
    """Drawn alone they would make a resample's slope zero."""
    rng = np.random.default_rng(5)
    groups = np.concatenate([np.repeat([0, 1], 10), np.arange(2, 82)])
    x = rng.normal(size=100)
    tiny = np.tile([0, 1.2e-8], 10)
    assert within_slope(tiny, 2 * tiny, np.arange(10).repeat(2)) is None
    few = within_slope(x, 2 * x, groups)
    assert (few.value, few.low, few.high) == (pytest.approx(2), -math.inf, math.inf)
    groups = np.concatenate([np.repeat(np.arange(12), 5), np.arange(20, 60)])
    many = within_slope(x, 2 * x, groups)
    assert (many.low, many.high) == (pytest.approx(2), pytest.approx(2))


def test_what_varies_by_rounding_alone_determines_no_exponent():
    rng = np.random.default_rng(5)
    r, m1 = np.exp(rng.normal(0, 1.5, 400)), np.exp(rng.normal(-8, 2, 400))
    for width in (1e-9, 6e-8):  # the second is that of float32
        m2 = 1 + rng.uniform(-width, width, 400)
        with pytest.raises(ValueError, match="do not determine"):
            power_law(np.stack([r, m1, m2], axis=-1), m1 * m2 / r**2, np.arange(400) % 50)
    m2 = 1 + rng.uniform(-1e-5, 1e-5, 400)
    fit = power_law(np.stack([r, m1, m2], axis=-1), m1 * m2 / r**2, np.arange(400) % 50)
    assert fit.exponents[2].value == pytest.approx(1, abs=1e-3)


def test_wilson_against_published_values():
    # Brown, Cai, DasGupta (2001) and the closed form by hand for 10/10: 1/(1 + z^2/10).
    assert wilson(10, 10) == pytest.approx((1, 0.7224672, 1.0), abs=1e-6)
    assert wilson(0, 10) == pytest.approx((0, 0.0, 0.2775328), abs=1e-6)
    assert wilson(5, 10) == pytest.approx((0.5, 0.2365931, 0.7634069), abs=1e-6)
    for bad in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="no rate"):
            wilson(*bad)


def test_groups_without_points_do_not_narrow_an_interval():
    for found in (
        mean([5, 0, 0, 0], [1, 0, 0, 0]),
        median([[1.0], [np.nan], [np.nan]]),
        r_squared([1, 0, 0], [4, 0, 0]),
        over_seeds_and_groups(np.array([[[1.0, 1]], [[2.0, 1]], [[3.0, 1]]]), lambda s: s[..., 0]),
    ):
        assert np.isinf(found[1:]).all()
    # A group at the fixed reference adds nothing to the total, and its error counts.
    assert r_squared([1.0, 0.5, 1], [4.0, 0, 2]).value == pytest.approx(1 - 2.5 / 6)
    whole = mean([1.0, 2, 3], [1, 1, 1])
    assert mean([1.0, 2, 3, 0], [1, 1, 1, 0]) == whole


def test_the_bootstrap_draws_whole_sequences():
    rng = np.random.default_rng(0)
    per_sequence = rng.normal(2.0, 1.0, 400)
    # Ten equal points of each sequence: treating them as independent would narrow the interval.
    value, low, high = mean(10 * per_sequence, np.full(400, 10))
    assert value == pytest.approx(per_sequence.mean())
    half = 1.96 * per_sequence.std() / 20
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    assert mean([3.0], [2]) == (1.5, -np.inf, np.inf)
    with pytest.raises(ValueError, match="with a group"):
        bootstrap(np.zeros((0, 2)), lambda s: s[..., 0])


def test_r_squared_is_about_a_fixed_reference():
    value, low, high = r_squared([1.0, 3.0], [10.0, 10.0])
    assert value == pytest.approx(0.8)
    assert low == pytest.approx(0.7)
    assert high == pytest.approx(0.9)


def test_over_seeds_needs_three():
    with pytest.raises(ValueError, match="at least 3"):
        over_seeds([1.0, 2.0])


@pytest.mark.full
def test_a_median_has_the_interval_of_resampled_sequences():
    rng = np.random.default_rng(0)
    found = [median(rng.normal(3, 1, (60, 2)), seed=n) for n in range(100)]
    middles, lows, highs = np.transpose(found)
    assert middles.mean() == pytest.approx(3, abs=0.05)
    assert 88 <= np.sum((lows < 3) & (highs > 3)) <= 100
    assert median([[1.0, np.nan]])[1:] == (-np.inf, np.inf)


def rms(sums):
    return np.sqrt(sums[..., 0] / sums[..., 1])


@pytest.mark.full
def test_a_studentized_interval_of_well_behaved_groups_is_that_of_the_delta_method():
    sums = np.random.default_rng(0).uniform(1, 3, (4000, 1)) * [1, 0] + [0, 1]
    found = studentized(sums, rms)
    x = sums[:, 0]
    error = x.std() / len(x) ** 0.5 / (2 * x.mean())
    assert found.value == rms(sums.sum(axis=0))
    for end, sign in ((found.low, -1), (found.high, 1)):
        assert np.log(end / found.value) == pytest.approx(1.96 * sign * error, rel=0.15)
    assert found == studentized(sums, rms)
    assert found != studentized(sums, rms, seed=1)


def test_a_group_that_makes_half_of_a_sum_stretches_a_studentized_interval_upwards():
    sums = np.ones((200, 2))
    sums[0, 0] = 200
    found, plain = studentized(sums, rms), bootstrap(sums, rms)
    assert found.high / found.value > 1.5 * plain.high / plain.value


def test_studentized_intervals_of_one_group_of_no_error_and_of_no_table():
    assert studentized([[4.0, 1.0]], rms) == (2.0, -np.inf, np.inf)
    assert studentized([[0.0, 1.0]] * 3, rms) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"must be \[n_groups, k\] with a group, got \(2,\)"):
        studentized([1.0, 2.0], rms)


def test_resamples_may_be_infinite():
    value, low, high = median(np.r_[np.arange(20.0), np.full(12, np.inf)][:, None])
    assert (value, high) == (15.5, math.inf)
    assert low < 15.5


def test_groups_that_are_all_alike_leave_no_doubt():
    ratio = studentized(np.tile([0.3, 0.1], (5, 1)), lambda sums: sums[..., 0] / sums[..., 1])
    assert ratio == pytest.approx((3, 3, 3))
