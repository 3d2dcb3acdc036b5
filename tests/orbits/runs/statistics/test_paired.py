"""Paired comparisons: differences seed by seed, and false positives at the stated rate."""

import itertools

import numpy as np
import pytest

from orbits.runs.statistics import (
    all_at_once,
    compare,
    holm,
    least_p,
    paired,
    ranked,
    reachable,
)


def test_differences_are_those_of_one_seed_whatever_the_order():
    one = {7: 0.79, 8: 1.3, 9: 1.81, 3: 50.0}
    other = {9: 2.0, 7: 1.0, 8: 1.5}
    found = paired(one, other)
    # standard deviation 0.01, half-width 4.3027 * 0.01 / sqrt(3)
    assert found.difference == pytest.approx((-0.2, -0.22484, -0.17516), abs=1e-5)
    assert found.seeds == 3
    # t = -0.2 / (0.01 / sqrt(3)), t^2 = 1200; for 2 degrees of freedom p = 1 - t / sqrt(2 + t^2)
    assert found.p == pytest.approx(1 - (1200 / 1202) ** 0.5, rel=1e-6)
    assert paired(other, one).difference.value == pytest.approx(0.2)


def test_the_interval_excludes_zero_where_p_is_below_five_percent():
    rng = np.random.default_rng(0)
    for size in rng.normal(0, 0.8, 200):
        found = paired(dict(enumerate(rng.normal(size, 1, 4))), dict.fromkeys(range(4), 0.0))
        low, high = found.difference[1:]
        assert (found.p < 0.05) == (low > 0 or high < 0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}),
        ({0: 1.0, 1: 2.0, 2: 3.0}, {3: 1.0, 4: 2.0, 5: 3.0}),
        ({0: 1.0, 1: 2.0, 2: float("nan")}, {0: 1.0, 1: 2.0, 2: 3.0}),
    ],
)
def test_two_seeds_or_a_value_that_is_not_finite_compare_nothing(one, other):
    assert paired(one, other) is None
    assert compare({"a": (one, other)}) == {}


def test_differences_without_spread():
    same = {0: 1.0, 1: 2.0, 2: 3.0}
    assert paired(same, same).p == 1
    # Equal shifts tell their sign alone: one of 2 in each of 3 seeds, on both sides.
    assert paired({seed: value + 1 for seed, value in same.items()}, same).p == 0.25


def test_differences_that_only_rounding_spreads():
    tenth, none = dict.fromkeys(range(3), 0.1), dict.fromkeys(range(3), 0.0)
    assert paired(tenth, none).p == 0.25
    # 0.97 - 0.95 and 0.95 - 0.93 are not the same float.
    one, other = (dict(enumerate(x)) for x in ([0.97, 0.96, 0.95], [0.95, 0.94, 0.93]))
    assert paired(one, other).p == 0.25
    assert paired({0: 0.1 + 0.2, 1: 0.3, 2: 0.3}, {0: 0.3, 1: 0.1 + 0.2, 2: 0.3}).p == 1


def test_holm_by_hand():
    # 4 * 0.01; max of it and 3 * 0.02; max and 2 * 0.03 (equal); 1 * 0.2
    assert holm([0.03, 0.01, 0.2, 0.02]) == pytest.approx([0.06, 0.04, 0.2, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_pairs_that_cannot_be_compared_do_not_count():
    rows = {name: dict(enumerate(x)) for name, x in (("a", [1, 2, 3]), ("b", [2.1, 3, 4.1]))}
    few = {0: 1.0}
    (alone,) = compare({"ab": (rows["a"], rows["b"])}).values()
    found = compare({"ab": (rows["a"], rows["b"]), "af": (rows["a"], few)})
    assert found == {"ab": alone}
    assert alone.adjusted == alone.p


def false_positives(tables, variants, n, seed=0):
    """Return the shares of families, and of pairs, that name a difference where there is none.

    Variants share what a seed brings with it, and each training adds an error of its own.
    """
    rng = np.random.default_rng(seed)
    families, single = [], []
    for _ in range(tables):
        values = rng.normal(0, 1, n) + rng.normal(0, 0.3, (variants, n))
        rows = [dict(enumerate(row)) for row in values]
        pairs = {(a, b): (rows[a], rows[b]) for a, b in itertools.combinations(range(variants), 2)}
        found = compare(pairs).values()
        families.append(any(each.differs for each in found))
        single.append(np.mean([each.p < 0.05 for each in found]))
    return 100 * np.mean(families), 100 * np.mean(single)


@pytest.mark.parametrize(
    ("tables", "n"),
    [
        (250, 3),
        pytest.param(1500, 3, marks=pytest.mark.full),
        pytest.param(1500, 5, marks=pytest.mark.full),
    ],
)
def test_false_positives_have_the_stated_rate(tables, n):
    families, single = false_positives(tables, 5, n)
    room = 3 * (5 * 95 / tables) ** 0.5  # three standard errors of a rate of 5%
    assert families < 5 + room
    assert abs(single - 5) < room


def test_one_pair_is_falsely_told_apart_in_five_percent():
    families, single = false_positives(1000, 2, 3)
    assert families == single
    assert 3 < families < 7


def rows_of(values):
    return [dict(enumerate(row)) for row in values]


def test_all_at_once_is_the_exact_test_where_permutations_can_be_counted():
    # Three rows in the same order in each of three seeds: 6 of 6^3 permutations spread as far.
    rows = rows_of([[1, 11, 101], [2, 12, 102], [3, 13, 103]])
    assert all_at_once(rows) == pytest.approx(6 / 216)
    assert all_at_once(rows[::-1]) == pytest.approx(6 / 216)


def test_all_at_once_sees_what_no_corrected_pair_shows():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(6, 5)) + 10 * rng.normal(size=5) + 1.1 * np.repeat([0, 1], 3)[:, None]
    rows = rows_of(values)
    assert all_at_once(rows) < 0.05
    pairs = compare(dict(enumerate(itertools.combinations(rows, 2))))
    assert not any(pair.differs for pair in pairs.values())


def test_all_at_once_claims_a_difference_where_there_is_none_in_five_percent():
    rng = np.random.default_rng(0)
    found = [
        all_at_once(rows_of(rng.standard_t(3, (4, 3)) + rng.normal(size=3))) for _ in range(99)
    ]
    assert 0 <= sum(p < 0.05 for p in found) <= 8
    assert 0.4 < np.mean(found) < 0.6


def test_a_row_whose_seeds_scatter_ten_times_as_much_is_seldom_taken_for_another_level():
    rng = np.random.default_rng(0)
    scatter = np.array([10.0, 1, 1, 1])[:, None]
    found = [all_at_once(rows_of(scatter * rng.normal(size=(4, 3)))) for _ in range(200)]
    assert sum(p < 0.05 for p in found) <= 0.07 * 200 + 3 * (0.07 * 0.93 * 200) ** 0.5


def test_ranks_are_of_the_seeds_that_all_rows_have_and_equal_values_share_theirs():
    rows = [{0: 5.0, 1: 1.0, 2: 2.0, 9: 0.0}, {2: 2.0, 0: 7.0, 1: 3.0}, {0: 6.0, 1: 2.0, 2: 8.0}]
    assert ranked(rows).tolist() == [[1, 1, 1.5], [3, 3, 1.5], [2, 2, 3]]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        rows_of([[1, 2, 3], [2, 3, 4]]),
        rows_of([[1, 2], [2, 3], [5, 6]]),
        [{0: 1.0, 1: 2.0, 2: 3.0}, {0: 1.0, 1: 2.0, 2: 3.0}, {3: 1.0, 4: 2.0, 5: 3.0}],
        rows_of([[1, 2, 3], [2, 3, 4], [1, 2, float("inf")]]),
    ],
)
def test_few_rows_few_seeds_or_a_value_that_is_not_finite_are_not_compared_at_once(rows):
    assert all_at_once(rows) is None


@pytest.mark.parametrize(
    "values",
    [
        [[1, 11, 101], [2, 12, 102], [3, 13, 103]],
        [[2, 11, 103], [2, 12, 102], [3, 11, 101]],
        [[0, 0, 5], [0, 0, 6], [1, 1, 7]],
        [[1, 1, 1], [1, 1, 1], [2, 1, 2]],
        [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
    ],
)
def test_the_least_p_value_is_that_of_all_seeds_in_one_order(values):
    in_order = np.sort(values, axis=0)
    assert least_p(rows_of(values)) == pytest.approx(all_at_once(rows_of(in_order)))
    assert least_p(rows_of(values)) <= all_at_once(rows_of(values)) + 1e-12


def test_the_least_p_value_of_many_permutations_is_one_in_those_drawn():
    assert least_p(rows_of(np.arange(18).reshape(6, 3))) == 1 / 5000
    # Two of four rows are equal in all seeds: 4! / 2 orders of (4! / 2)^3.
    assert least_p(rows_of([[1, 1, 1], [1, 1, 1], [2, 3, 4], [5, 6, 7]])) == 1 / 144
    assert least_p(rows_of([[1, 2, 3], [2, 3, 4]])) is None


def test_tests_that_correction_makes_hopeless_are_left_out():
    assert reachable([0.028]) == [True]
    assert reachable([0.028, 0.028]) == [False, False]
    assert reachable([0.028, 0.001]) == [False, True]
    assert reachable([0.02, 0.001]) == [True, True]
    assert reachable([0.03, 0.0002, 0.02, 1.0]) == [False, True, True, False]
    assert reachable([]) == []


def test_the_least_p_value_of_many_rows():
    values = np.arange(200.0)[:, None] + [0.0, 0.1, 0.2]
    rows = [dict(enumerate(row)) for row in values]
    assert least_p(rows) == 1 / 5000
