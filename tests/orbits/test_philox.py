import numpy as np
import pytest
from scipy import stats

from orbits import philox


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
    ids=["zeros", "ones", "pi"],
)  # fmt: skip
def test_philox_gives_the_known_answers_of_random123(counter, key, expected):
    def words(text):
        return [int(word, 16) for word in text.split()]

    found = philox.philox(*(np.array([word], np.uint64) for word in words(counter) + words(key)))
    assert [f"{int(word[0]):08x}" for word in found] == expected.split()


def test_uniforms_take_27_and_26_bits_of_two_words():
    found = philox.uniforms(0, 0, [0], 2)[0]
    for value, high, low in (
        (found[0], 0x6627E8D5, 0xE169C58D),
        (found[1], 0xBC57AC4C, 0x9B00DBD8),
    ):
        assert abs(value - ((high // 32) * 2**26 + low // 64) / 2**53) <= 2.0**-53


@pytest.mark.parametrize("word", [0, 0xFFFFFFFF])
def test_uniforms_stay_inside_the_open_interval_for_extreme_words(word):
    words = np.array([word], np.uint64)
    assert 0 < philox.uniform(words, words)[0] < 1


def test_uniforms_are_uniform_and_uncorrelated():
    u = philox.uniforms(7, 2, np.arange(5000), 4)
    assert u.min() > 0
    assert u.max() < 1
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    off_diagonal = np.corrcoef(u.T) - np.eye(4)
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(5000)


def test_a_draw_does_not_depend_on_how_many_are_drawn_or_on_the_batch():
    indices = np.array([0, 3, 7, 2**33 + 5])
    many = philox.uniforms(11, 1, indices, 9)
    for n in (1, 2, 5, 8):
        np.testing.assert_array_equal(philox.uniforms(11, 1, indices, n), many[:, :n])
    np.testing.assert_array_equal(philox.uniforms(11, 1, indices[::-1], 9), many[::-1])
    np.testing.assert_array_equal(philox.uniforms(11, 1, indices[2:3], 9)[0], many[2])


def test_every_part_of_the_address_changes_every_draw():
    base = philox.uniforms(1, 0, [5], 6)[0]
    others = [(2, 0, 5), (1 + 2**32, 0, 5), (1, 1, 5), (1, 0, 6), (1, 0, 5 + 2**32)]
    for seed, stream, index in others:
        assert not np.any(philox.uniforms(seed, stream, [index], 6)[0] == base)
    grid = [
        philox.uniforms(seed, stream, np.arange(50), 4) for seed in range(5) for stream in range(6)
    ]
    assert len(np.unique(grid)) == 5 * 6 * 50 * 4


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_impossible_seed_is_refused(seed):
    with pytest.raises(ValueError, match=rf"seed must be in \[0, 2\^64\), got {seed}"):
        philox.uniforms(seed, 0, [0], 1)


def test_negative_index_is_refused():
    with pytest.raises(ValueError, match="trajectory index must not be negative, got -3"):
        philox.uniforms(0, 0, [4, -3], 1)
