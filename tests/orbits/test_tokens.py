import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbits import protocols
from orbits.tokens import TokenLayout, interleave

LAYOUT = TokenLayout(-4.0, 4.0, 512, (0.1, 0.2, 0.4))


@settings(deadline=None)
@given(st.lists(st.floats(-4, 4, exclude_max=True), min_size=1, max_size=50))
def test_round_trip_stays_within_half_a_bin(coordinates):
    back = LAYOUT.decode(LAYOUT.encode(coordinates))
    assert np.abs(back - coordinates).max() <= 0.5 * 8 / 512 * (1 + 1e-12)


@pytest.mark.parametrize("name", protocols.names())
def test_every_bin_decodes_to_its_own_centre(name):
    layout = protocols.get(name).tokens
    bins = np.arange(layout.n_bins)
    width = (layout.high - layout.low) / layout.n_bins
    np.testing.assert_allclose(
        layout.decode(bins), layout.low + (bins + 0.5) * width, rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(layout.encode(layout.decode(bins)), bins)
    assert layout.encode(0.0).dtype == np.uint16


def test_edges_belong_to_the_bin_above_and_the_outside_is_clipped():
    width = 8 / 512
    edges = -4 + width * np.arange(512)
    np.testing.assert_array_equal(LAYOUT.encode(edges), np.arange(512))
    np.testing.assert_array_equal(LAYOUT.encode(edges[1:] - 1e-12), np.arange(511))
    np.testing.assert_array_equal(LAYOUT.encode([-4.1, -1e9, -np.inf]), 0)
    np.testing.assert_array_equal(LAYOUT.encode([4.0, 4.1, 1e9, np.inf]), 511)


def test_paper_bins_are_seventy_to_the_au():
    coordinates = np.random.default_rng(0).normal(0, 25, 20_000)
    expected = np.clip(np.floor((coordinates + 50) * 70), 0, 6999)
    np.testing.assert_array_equal(protocols.get("paper").tokens.encode(coordinates), expected)
    assert expected.min() == 0
    assert expected.max() == 6999


def test_time_step_tokens_follow_the_bins_and_are_not_positions():
    np.testing.assert_array_equal(LAYOUT.dt_token([0, 1, 2]), [512, 513, 514])
    assert LAYOUT.dt_token(0).dtype == np.uint16
    assert LAYOUT.vocab_size == 515
    with pytest.raises(ValueError, match="513"):
        LAYOUT.decode([3, 513])
    with pytest.raises(ValueError, match="token -1 is not"):
        LAYOUT.decode([3, -1])
    with pytest.raises(ValueError, match="whole numbers"):
        LAYOUT.decode([1.5])
    with pytest.raises(ValueError, match="NaN"):
        LAYOUT.encode([0.0, np.nan])
    paper = protocols.get("paper").tokens
    np.testing.assert_array_equal(paper.dt_token([0, 1]), [7000, 7001])


def test_a_vocabulary_must_fit_in_uint16():
    largest = TokenLayout(0, 1, 2**16 - 2, (0.1, 0.2))
    assert largest.dt_token(1) == 2**16 - 1
    assert largest.encode(0.999999) == 2**16 - 3
    for n_bins in (2**16 - 1, 2**17, 1, 0, -5):
        with pytest.raises(ValueError, match=str(n_bins)):
            TokenLayout(0, 1, n_bins, (0.1, 0.2))
    with pytest.raises(ValueError, match="whole number"):
        TokenLayout(0, 1, 512.5, (0.1, 0.2))


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (float("nan"), 1), (-np.inf, 1)])
def test_an_empty_box_is_refused(low, high):
    with pytest.raises(ValueError, match="low < high"):
        TokenLayout(low, high, 8, (0.1,))


def test_interleave_takes_bodies_in_turn_and_cuts():
    points = np.arange(2 * 3 * 4 * 2).reshape(2, 3, 4, 2)  # sequences, times, bodies, x y
    flat = interleave(points, 10)
    assert flat.shape == (2, 10, 2)
    for row in range(10):
        np.testing.assert_array_equal(flat[:, row], points[:, row // 4, row % 4])
    with pytest.raises(ValueError, match="13"):
        interleave(points, 13)
