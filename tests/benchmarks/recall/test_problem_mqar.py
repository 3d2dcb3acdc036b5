import numpy as np
import pytest
from scipy import stats

from benchmarks.recall.measures import IGNORE, right_by_row
from benchmarks.recall.mqar import MQAR


def lookup(tokens, n_pairs):
    """Answer every token behind the pairs that is one of their keys; IGNORE elsewhere."""
    answers = np.full_like(tokens, IGNORE)
    for row, text in enumerate(tokens.tolist()):
        value_of = {text[2 * i]: text[2 * i + 1] for i in range(n_pairs)}
        for t in range(2 * n_pairs, len(text)):
            answers[row, t] = value_of.get(text[t], IGNORE)
    return answers


@pytest.mark.parametrize("problem", [MQAR(), MQAR(64, 32, 8), MQAR(65, 40, 5, power=1.0)], ids=str)
def test_targets_are_the_values_of_the_keys_that_return(problem):
    made = problem.examples("test", 0, np.arange(200))
    np.testing.assert_array_equal(made.targets, lookup(made.tokens, problem.n_pairs))
    assert ((made.targets != IGNORE).sum(axis=1) == problem.n_pairs).all()
    assert (right_by_row(lookup(made.tokens, problem.n_pairs), made.targets) == 1).all()


def test_tokens_lie_where_the_rule_says():
    problem = MQAR(vocab_size=31, seq_len=40, n_pairs=6)
    tokens = problem.examples("train", 0, np.arange(500)).tokens
    keys, values, rest = tokens[:, 0:12:2], tokens[:, 1:12:2], tokens[:, 12:]
    assert set(keys.reshape(-1)) == set(range(1, 15))
    assert set(values.reshape(-1)) == set(range(15, 31))
    for row in np.concatenate([keys, values + 100], axis=1):
        assert len(set(row)) == 12
    assert (rest[:, 1::2] == 0).all()  # queries stand at even offsets
    assert (np.sort(rest, axis=1)[:, -6:] == np.sort(keys, axis=1)).all()
    assert ((rest != 0).sum(axis=1) == 6).all()


def test_keys_and_values_are_uniform():
    tokens = MQAR(vocab_size=40, seq_len=16, n_pairs=4).examples("val", 1, np.arange(2000)).tokens
    for first in (tokens[:, 0], tokens[:, 1]):  # one of each per row, so that they do not exclude
        assert stats.chisquare(np.unique(first, return_counts=True)[1]).pvalue > 1e-3


@pytest.mark.full
@pytest.mark.parametrize("power", [0.01, 0.5, 1.0])
def test_gaps_follow_the_power_law(power):
    problem = MQAR(vocab_size=64, seq_len=34, n_pairs=1, power=power)
    made = problem.examples("train", 2, np.arange(5000))
    gaps = (np.argmax(made.targets != IGNORE, axis=1) - 2) // 2
    expected = np.array([power * (g + 1) ** (power - 1) for g in range(16)])
    counts = np.bincount(gaps, minlength=16)
    assert stats.chisquare(counts, 5000 * expected / expected.sum()).pvalue > 1e-3


def test_gaps_are_drawn_one_after_the_other_without_repetition():
    made = MQAR(vocab_size=64, seq_len=12, n_pairs=2).examples("train", 3, np.arange(6000))
    gaps = np.array(
        [[(row.index(row[2 * i], 4) - 4) // 2 for i in range(2)] for row in made.tokens.tolist()]
    )
    p = np.array([0.01 * (g + 1) ** -0.99 for g in range(4)])
    p /= p.sum()
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    counts = [(gaps == pair).all(axis=1).sum() for pair in pairs]
    expected = [6000 * p[a] * p[b] / (1 - p[a]) for a, b in pairs]
    assert stats.chisquare(counts, expected).pvalue > 1e-3


def test_random_non_queries_fill_only_the_zeros():
    plain = MQAR(vocab_size=64, seq_len=32, n_pairs=3)
    filled = MQAR(vocab_size=64, seq_len=32, n_pairs=3, random_non_queries=True)
    a, b = (problem.examples("test", 0, np.arange(2000)) for problem in (plain, filled))
    np.testing.assert_array_equal(a.targets, b.targets)
    np.testing.assert_array_equal(a.tokens[a.tokens > 0], b.tokens[a.tokens > 0])
    counts = np.bincount(b.tokens[a.tokens == 0], minlength=64)
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_pairs": 20, "seq_len": 200, "vocab_size": 32},
         r"n_pairs must be in \[1, 15\], the keys of vocab_size 32, got 20"),
        ({"n_pairs": 0}, r"n_pairs must be in \[1, 4095\]"),
        ({"n_pairs": 17}, "seq_len must be even and at least 4 \\* n_pairs = 68, got 64"),
        ({"seq_len": 63}, "seq_len must be even"),
        ({"power": 0.0}, "power must be positive, got 0.0"),
    ],
)  # fmt: skip
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        MQAR(**settings)
