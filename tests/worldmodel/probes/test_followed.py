"""The share of the prompts' laws that continuations follow."""

import pytest

from worldmodel.probes.implied.followed import followed

BINS = {"power_1_5": -1.48, "newton": -1.96, "power_2_5": -2.44, "softened": -1.5}


def test_who_imposes_one_law_follows_none_and_the_truth_follows_all():
    assert followed(dict.fromkeys(BINS, -2.0), BINS) == pytest.approx(0)
    assert followed(BINS, BINS) == pytest.approx(1)
    half = {law: -2 + 0.5 * (value + 2) for law, value in BINS.items()}
    assert followed(half, BINS) == pytest.approx(0.5)


def test_over_three_worlds_it_is_the_difference_between_the_outer_ones():
    found = {"power_1_5": -1.9, "newton": -1.6, "power_2_5": -2.1}
    assert followed(found, BINS) == pytest.approx(0.2 / 0.96)


@pytest.mark.parametrize("known", [{"newton": -2.0}, {"newton": -2.0, "softened": -1.5}, {}])
def test_there_is_no_slope_over_one_power(known):
    assert followed(known, BINS) is None
