"""The training mixture holds each problem's own rows, padded, in the shares it says."""

import numpy as np
import pytest

from benchmarks.recall.measures import IGNORE
from benchmarks.recall.mqar import MQAR
from benchmarks.recall.mqar_mixture import MQARMixture

SMALL = {"vocab_size": 64, "seq_lens": (8, 12, 16), "n_pairs": (1, 2, 4), "rows": (5, 2, 3)}


def test_rows_are_those_of_the_problems():
    mixture = MQARMixture(**SMALL)
    made = mixture.examples("train", 3, np.arange(25))
    assert made.tokens.shape == (25, 16)
    asked = (made.targets != IGNORE).sum(axis=1)
    which = np.array([SMALL["n_pairs"].index(pairs) for pairs in asked])
    assert np.bincount(which[:10]).tolist() == [5, 2, 3], "as many rows hold exact shares"
    assert set(which[:6]) == {0, 1, 2}, "a short run of rows holds all problems"
    for index in range(25):
        length, pairs = SMALL["seq_lens"][which[index]], SMALL["n_pairs"][which[index]]
        problem = MQAR(64, length, pairs, random_non_queries=True)
        own = problem.examples("train", 3, np.array([index]))
        assert (made.tokens[index, :length] == own.tokens[0]).all()
        assert (made.targets[index, :length] == own.targets[0]).all()
        assert (made.tokens[index, length:] == 0).all()
        assert (made.targets[index, length:] == IGNORE).all()


def test_the_default_is_zoologys():
    mixture = MQARMixture()
    assert (mixture.vocab_size, mixture.seq_len, sum(mixture.rows)) == (8192, 256, 180_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": (5, 2)}, "n_pairs, rows must be equally many, got \\[3, 3, 2\\]"),
        ({"rows": (5, 0, 3)}, "rows must be at least 1, got 0"),
        ({"n_pairs": (1, 2, 5)}, "seq_len must be even and at least"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        MQARMixture(**{**SMALL, **change})
