"""The variants of recall: what is shown, what is asked, and what single clues tell."""

import numpy as np
import pytest

from benchmarks.recall.measures import IGNORE
from benchmarks.recall.mqar import MQAR
from benchmarks.recall.mqar_compositional import Compositional
from benchmarks.recall.mqar_forgetting import Forgetting
from benchmarks.recall.mqar_repeated import Repeated

LOAD = {"vocab_size": 64, "seq_len": 48, "n_pairs": 4}


def rows(problem, n=60):
    made = problem.examples("test", 0, np.arange(n))
    return zip(made.tokens, made.targets, strict=True)


def asked(tokens, targets):
    """Return place, key and answer of each query."""
    return [(i, tokens[i], targets[i]) for i in np.flatnonzero(targets != IGNORE)]


def test_one_pass_has_the_rows_of_its_own_stream_and_the_form_of_the_plain_problem():
    for tokens, targets in rows(Repeated(**LOAD, n_passes=3)):
        once = tokens[:8]
        np.testing.assert_array_equal(tokens[:24], np.tile(once, 3))
        known = dict(zip(once[::2], once[1::2], strict=True))
        queries = asked(tokens, targets)
        assert {key: value for _, key, value in queries} == known
        assert all(place >= 24 and place % 2 == 0 for place, _, _ in queries)
    assert Repeated(**LOAD, n_passes=1).n_shown == MQAR(**LOAD).n_shown


def test_the_answer_is_the_last_value_of_a_key():
    changed = 0
    for tokens, targets in rows(Forgetting(**LOAD, n_updates=2)):
        pairs = tokens[:12].reshape(6, 2)
        first, last = dict(pairs[:4]), dict(pairs)  # the second takes the last value of a key
        assert len(set(pairs[:, 1])) == 6
        queries = asked(tokens, targets)
        assert {key: value for _, key, value in queries} == last
        assert all(place >= 12 for place, _, _ in queries)
        changed += sum(first[key] != value for _, key, value in queries)
    assert changed == 2 * 60


def test_neither_key_alone_tells_the_value():
    for tokens, targets in rows(Compositional(**LOAD)):
        triples = tokens[:12].reshape(4, 3)
        known = {(one, other): value for one, other, value in triples}
        assert len(known) == len(set(triples[:, 2])) == 4
        for place, key, value in asked(tokens, targets):
            assert known[tokens[place - 1], key] == value
            assert place % 3 == 1
        for column in (0, 1):
            assert sorted(np.unique(triples[:, column], return_counts=True)[1]) == [2, 2]


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (Repeated, {"n_passes": 0}, "n_passes must be at least 1"),
        (Repeated, {"n_passes": 6}, r"at least 2 \* \(n_passes \+ 1\) \* n_pairs = 56, got 48"),
        (Forgetting, {"n_updates": 5}, "n_updates must be at most n_pairs 4, got 5"),
        (Forgetting, {"vocab_size": 10}, "vocab_size 10 has fewer than 6 values"),
        (Compositional, {"n_pairs": 5}, "n_pairs must be a square number such as 4 or 9, got 5"),
        (Compositional, {"vocab_size": 9}, "vocab_size 9 is too small for 4 triples"),
        (Compositional, {"n_pairs": 9}, r"at least 6 \* n_pairs = 54, got 48"),
    ],
)
def test_what_does_not_fit_is_refused(kind, changes, words):
    with pytest.raises(ValueError, match=words):
        kind(**{**LOAD, **changes})
