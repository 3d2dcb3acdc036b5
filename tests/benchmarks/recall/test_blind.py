"""Answers without a look-up: what they score, and that nothing is compared for it."""

import numpy as np
import pytest

from benchmarks.recall import blind, mad_settings
from benchmarks.recall.measures import IGNORE
from benchmarks.recall.mqar import MQAR
from benchmarks.recall.problem import Examples


class Given:
    """A problem of which the rows are given."""

    def __init__(self, tokens, targets):
        self.made = np.asarray(tokens), np.asarray(targets)

    def examples(self, split, seed, rows):
        return Examples(*(x[rows % len(x)] for x in self.made))


def test_what_a_row_has_shown_most_often_is_counted_to_the_question():
    tokens, targets = [[5, 5, 6, 6, 6]] * 2, [[IGNORE, 6, 5, IGNORE, 6]] * 2
    # Shown so far: 5; 5; 6. So 5 is right once in once asked, 6 once in twice.
    assert blind.commonest(Given(tokens, targets)) == pytest.approx(100 * (1 + 0.5) / 2)


def test_where_no_answer_is_shown_it_is_one_of_them():
    tokens, targets = [[1, 2], [1, 2]], [[IGNORE, 7], [IGNORE, 8]]
    assert blind.commonest(Given(tokens, targets)) == 50


def test_a_place_that_always_holds_the_answer_is_found_and_one_that_does_is_not_needed():
    tokens = [[3, 4, 1], [5, 6, 1], [7, 8, 1], [9, 2, 1]]
    last = [[IGNORE, IGNORE, row[1]] for row in tokens]
    assert blind.by_place(Given(tokens, last)) == 100
    elsewhere = [[IGNORE, IGNORE, 40 + i] for i in range(4)]
    assert blind.by_place(Given(tokens, elsewhere)) == 0


def test_queries_with_likely_places_tell_part_of_the_answer():
    near, even = (MQAR(256, 32, 4, power=power) for power in (0.01, 1.0))
    assert 27 < blind.by_place(near) < 33
    assert 22 < blind.by_place(even) < 28


@pytest.mark.parametrize(
    ("name", "score"),
    [("in_context_recall", 31.8), ("selective_copy", 20.3), ("compression", 21.0)],
)
def test_problems_of_mad_have_scores_that_need_no_look_up(name, score):
    assert blind.commonest(mad_settings.BASELINES[name][0]) == pytest.approx(score, abs=0.5)
