"""The decomposition and the rank correlation of few_labels, against their definitions."""

import itertools

import numpy as np
import pytest
from scipy import stats

from benchmarks.few_labels.correlations import rank_correlation
from benchmarks.few_labels.variance import shares


def test_the_variance_of_rows_and_columns_is_found():
    rows, columns = np.array([0.0, 1.0, 4.0]), np.array([0.0, 2.0])
    assert shares(rows[:, None] + 0 * columns)[1:4] == pytest.approx((1, 0, 0))
    assert shares(0 * rows[:, None] + columns)[1:4] == pytest.approx((0, 1, 0))
    both = shares(rows[:, None] + columns)
    total = 2 * np.sum((rows - rows.mean()) ** 2) + 3 * np.sum((columns - columns.mean()) ** 2)
    assert both.columns == pytest.approx(3 * np.sum((columns - columns.mean()) ** 2) / total)
    assert both.rest == pytest.approx(0)
    assert both.deviation == pytest.approx((total / 5) ** 0.5)


def test_independent_values_have_the_shares_of_their_degrees_of_freedom():
    draws = np.random.default_rng(0).standard_normal((4000, 6, 3))
    found = [shares(table) for table in draws]
    assert found[0].chance == pytest.approx((5 / 17, 2 / 17, 10 / 17))
    assert np.mean([each[1:4] for each in found], axis=0) == pytest.approx(
        found[0].chance, abs=0.01
    )


@pytest.mark.parametrize("table", [[[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 1.0], [1.0, 1.0]], []])
def test_there_is_no_division_of_one_row_or_of_no_variance(table):
    assert shares(table) is None


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
        ([3, 1, 2, 6, 5, 4], [1, 2, 3, 4, 5, 6]),
        ([0.2, 0.9, 0.4, 0.1], [0.5, 0.1, 0.2, 0.3]),
    ],
)
def test_the_p_of_a_rank_correlation_counts_every_order(x, y):
    found = rank_correlation(x, y)
    every = [abs(stats.spearmanr(order, y)[0]) for order in itertools.permutations(x)]
    assert found.rho == pytest.approx(stats.spearmanr(x, y)[0])
    assert found.p == pytest.approx(np.mean(np.array(every) >= abs(found.rho) - 1e-9))
    assert found.n == len(x)


def test_what_cannot_be_correlated():
    assert rank_correlation([1, 2], [1, 2]) is None
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None
    with pytest.raises(ValueError, match="same length, got 2 and 3"):
        rank_correlation([1, 2], [1, 2, 3])


def test_many_pairs_have_an_approximate_p():
    x, y = np.random.default_rng(0).standard_normal((2, 30))
    assert rank_correlation(x, y).p == pytest.approx(stats.spearmanr(x, y).pvalue)
