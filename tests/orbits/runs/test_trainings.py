"""A metric over trainings: with its interval, or each of few."""

import pytest

from orbits.runs.result import Metric
from orbits.runs.statistics import over_seeds
from orbits.runs.table import NOTHING
from orbits.runs.trainings import box, together, words

ONE = [Metric(1.5, 1.25, 1.75)]
TWO = [Metric(1.0, 0.5, 1.5), Metric(2.0, 1.5, 2.5)]
THREE = [*TWO, Metric(4.5)]


def test_two_trainings_have_no_interval_and_three_have():
    assert together(ONE) == (1.5, 1.25, 1.75)
    assert together(TWO) == (1.5, 1.0, 2.0)
    assert together(THREE) == over_seeds([1.0, 2.0, 4.5])


def test_what_no_training_changes_has_its_own_interval():
    assert together(ONE * 3) == (1.5, 1.25, 1.75)
    assert together([Metric(1.5)] * 2) == (1.5, 1.5, 1.5)


@pytest.mark.parametrize(
    ("trainings", "in_a_table", "said"),
    [
        ([Metric(1.5)], "1.50", "1.50"),
        (ONE, "1.50 [1.25, 1.75]", "1.50 [1.25, 1.75]"),
        (TWO, "1.50 (1.00, 2.00)", "1.00, 2.00"),
        (THREE, "2.50 [-1.98, 6.98]", "2.50 [-1.98, 6.98]"),
    ],
)
def test_a_table_and_a_sentence_have_an_interval_or_each_training(trainings, in_a_table, said):
    assert box(trainings).words == in_a_table
    assert words(trainings) == said


def test_nothing_was_measured():
    assert box([]) == NOTHING
