from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from benchmarks.recall.mad_settings import settings
from benchmarks.recall.measures import IGNORE, macro_accuracy, micro_accuracy
from benchmarks.recall.skills.compression import Compression
from benchmarks.recall.skills.fuzzy_recall import FuzzyRecall
from benchmarks.recall.skills.in_context_recall import InContextRecall
from benchmarks.recall.skills.memorization import Memorization
from benchmarks.recall.skills.selective_copy import SelectiveCopy

NOISY = InContextRecall(vocab_size=32, noise_vocab_size=16, noise_fraction=0.2)


def recalled(tokens, n_keys, n_words):
    """Read pairs; answer at every key that came before in the row."""
    answers = np.full_like(tokens, IGNORE)
    for row, text in enumerate(tokens.tolist()):
        value_of = {}
        for t in range(0, len(text), 2):
            key, value = text[t : t + 2]
            if key < n_words:
                assert key < n_keys <= value < n_words
                answers[row, t] = value_of.get(key, IGNORE)
                assert value_of.setdefault(key, value) == value
    return answers


@pytest.mark.parametrize(
    ("problem", "n_keys", "n_words"),
    [
        (InContextRecall(), 8, 16),
        (NOISY, 8, 16),
        (InContextRecall(40, 64, 9, noise_fraction=0.8), 15, 31),
    ],
)
def test_recall_asks_for_every_key_that_came_before(problem, n_keys, n_words):
    made = problem.examples("test", 0, np.arange(300))
    answers = recalled(made.tokens, n_keys, n_words)
    np.testing.assert_array_equal(made.targets, answers)
    assert (made.targets[:, -2] != IGNORE).all()  # the final pair can always be answered
    assert macro_accuracy(answers, made.targets) == 1


def test_training_on_recall_asks_for_every_next_token():
    for problem in (InContextRecall(), NOISY):
        made = problem.examples("train", 0, np.arange(20))
        np.testing.assert_array_equal(made.targets[:, :-1], made.tokens[:, 1:])
        assert (made.targets[:, -1] == IGNORE).all()
        # The same rule as in the test split makes the rows.
        recalled(made.tokens, 8, 16)


def test_recall_draws_uniformly():
    tokens = InContextRecall().examples("test", 0, np.arange(600)).tokens
    assert stats.chisquare(np.bincount(tokens[:, :-2:2].reshape(-1))).pvalue > 1e-3
    assert stats.chisquare(np.bincount(tokens[:, 1] - 8)).pvalue > 1e-3
    values = [len({v for _, v in zip(row[::2], row[1::2], strict=True)}) for row in tokens.tolist()]
    assert min(values) < 8  # two keys of a row may share a value


@pytest.mark.parametrize("fraction", [0.2, 0.8])
def test_noise_takes_its_share_of_the_pairs(fraction):
    problem = InContextRecall(vocab_size=32, noise_vocab_size=16, noise_fraction=fraction)
    pairs = problem.examples("test", 0, np.arange(500)).tokens.reshape(500, 64, 2)
    noisy = pairs >= 16
    assert (noisy.all(axis=2) == noisy.any(axis=2)).all()
    assert stats.chisquare(np.bincount(pairs[noisy] - 16)).pvalue > 1e-3
    noisy = noisy.all(axis=2)
    assert not noisy[:, -1].any()
    assert (~noisy[:, :-1]).any(axis=1).all()
    # One of the 63 other pairs is spared: each is noise with 62/63 of the probability.
    n, p = 500 * 62, fraction
    assert abs(noisy.sum() - n * p) < 4 * np.sqrt(n * p * (1 - p))
    assert stats.chisquare(noisy[:, :-1].sum(axis=0)).pvalue > 1e-3


def test_noise_always_spares_a_pair():
    problem = InContextRecall(8, 6, noise_vocab_size=4, noise_fraction=0.99)
    tokens = problem.examples("test", 0, np.arange(300)).tokens
    assert ((tokens[:, 0:4:2] < 4).sum(axis=1) >= 1).all()


def parsed(row, n_keys, padding):
    """Return the pairs of a row: runs of key tokens, each followed by a run of value tokens."""
    pairs, last = [], None
    for t, token in enumerate(row):
        kind = 0 if token < n_keys else 1
        if token == padding:
            assert not pairs
            continue
        if kind == 0 and last != 0:
            pairs.append(((), (), []))
        key, value, places = pairs[-1]
        if kind == 0:
            pairs[-1] = (*key, token), value, places
        else:
            pairs[-1] = key, (*value, token), [*places, t]
        last = kind
    return pairs


@pytest.mark.parametrize("problem", [FuzzyRecall(), FuzzyRecall(32, 61, 2, 4)], ids=str)
def test_fuzzy_recall_asks_for_every_value_that_came_before(problem):
    n_keys, padding = (problem.vocab_size - 1) // 2, problem.vocab_size - 1
    made = problem.examples("test", 0, np.arange(200))
    for tokens, targets in zip(made.tokens.tolist(), made.targets.tolist(), strict=True):
        whole = [*tokens, targets[-1]]
        pairs = parsed(whole, n_keys, padding)
        expected, value_of = [IGNORE] * problem.seq_len, {}
        for key, value, places in pairs:
            assert len(key) == len(set(key)) == problem.max_key
            assert 1 <= len(value) == len(set(value)) <= problem.max_value
            if key in value_of:
                assert value_of[key] == value
                for place, token in zip(places, value, strict=True):
                    expected[place - 1] = token
            value_of[key] = value
        assert targets == expected
        assert pairs[-1][0] in [key for key, _, _ in pairs[:-1]]  # the probe was shown
        assert whole.count(padding) < problem.max_key + problem.max_value


def test_fuzzy_training_has_keys_of_every_size_and_asks_for_every_next_token():
    problem = FuzzyRecall()
    made = problem.examples("train", 0, np.arange(300))
    np.testing.assert_array_equal(made.targets[:, :-1], made.tokens[:, 1:])
    keys, values, motifs = Counter(), Counter(), Counter()
    for tokens, last in zip(made.tokens.tolist(), made.targets[:, -1].tolist(), strict=True):
        pairs = parsed([*tokens, last], 7, 15)
        assert pairs[-1][:2] in [pair[:2] for pair in pairs[:-1]]
        for key, _, _ in pairs[:-1]:
            keys[len(key)] += 1
            motifs[key] += len(key) == 2
        for value in {key: value for key, value, _ in pairs}.values():
            values[len(value)] += 1
    assert stats.chisquare([keys[n] for n in (1, 2, 3)]).pvalue > 1e-3
    assert set(values) == {1, 2, 3}
    orders = [count for key, count in motifs.items() if len(key) == 2]
    assert len(orders) == 42  # every order of two of the seven
    assert stats.chisquare(orders).pvalue > 1e-3


def test_the_probe_may_stand_anywhere():
    made = FuzzyRecall(vocab_size=128).examples("test", 0, np.arange(1500))
    places = []
    for tokens, last in zip(made.tokens.tolist(), made.targets[:, -1].tolist(), strict=True):
        pairs = [pair[:2] for pair in parsed([*tokens, last], 63, 127)]
        places.append((pairs.index(pairs[-1]) + 0.5) / (len(pairs) - 1))
    assert stats.kstest(places, "uniform").statistic < 0.06  # it has about 24 places


def test_selective_copy_asks_for_the_words_in_order():
    problem = SelectiveCopy()
    made = problem.examples("test", 0, np.arange(400))
    body = made.tokens[:, :239]
    assert (made.tokens[:, 239] == 15).all()
    assert (made.tokens[:, 240:] == 14).all()
    assert (made.targets[:, :240] == IGNORE).all()
    words = np.array([[token for token in row if token != 14] for row in body.tolist()])
    np.testing.assert_array_equal(words, made.targets[:, 240:])
    assert stats.chisquare(np.bincount(words.reshape(-1))).pvalue > 1e-3
    assert words.max() == 13


def test_blanks_fall_evenly_before_between_and_after_the_words():
    tokens = SelectiveCopy().examples("train", 0, np.arange(400)).tokens[:, :239]
    blanks = np.zeros(17)
    for row in tokens.tolist():
        place = 0
        for token in row:
            place += token != 14
            blanks[place] += token == 14
    assert blanks.sum() == 400 * 223
    assert stats.chisquare(blanks).pvalue > 1e-3


def test_compression_gives_back_what_it_reads():
    made = Compression().examples("train", 0, np.arange(300))
    np.testing.assert_array_equal(made.tokens, made.targets)
    assert (made.tokens[:, -1] == 15).all()
    assert stats.chisquare(np.bincount(made.tokens[:, :-1].reshape(-1))).pvalue > 1e-3
    assert made.tokens[:, :-1].max() == 14


@pytest.mark.parametrize(("vocab_size", "ceiling"), [(256, 1.0), (8192, 0.632)])
def test_facts_can_be_learned_as_far_as_they_are_shown(vocab_size, ceiling):
    problem = Memorization(vocab_size=vocab_size)
    n_keys = (vocab_size - 1) // 2
    train = problem.examples("train", 0, np.arange(256))
    fact = {}
    for tokens, targets in zip(train.tokens.tolist(), train.targets.tolist(), strict=True):
        for key, inserted, ignored, value in zip(
            tokens[::2], tokens[1::2], targets[::2], targets[1::2], strict=True
        ):
            assert (inserted, ignored) == (vocab_size - 1, IGNORE)
            assert 0 <= key < n_keys <= value < vocab_size - 1
            assert fact.setdefault(key, value) == value
    assert len(set(fact.values())) == len(fact)
    test = problem.examples("test", 1, np.arange(1280))
    answers = np.full_like(test.tokens, IGNORE)
    answers[:, 1::2] = [[fact.get(key, 0) for key in row] for row in test.tokens[:, ::2].tolist()]
    assert micro_accuracy(answers, test.targets) == pytest.approx(ceiling, abs=0.02)


def test_facts_are_of_their_own_seed():
    assert (Memorization().facts != Memorization(map_seed=1).facts).mean() > 0.9
    np.testing.assert_array_equal(Memorization().facts, Memorization(seq_len=64).facts)


def test_the_66_settings():
    every = list(settings())
    assert Counter(setting.skill for setting in every) == {
        "in_context_recall": 11, "fuzzy_recall": 11, "noisy_recall": 14, "selective_copy": 13,
        "compression": 11, "memorization": 6,
    }  # fmt: skip
    assert len(set(every)) == 66
    for setting in every:
        base = next(s for s in every if s.skill == setting.skill)
        differ = {"n_train"} if setting.n_train != base.n_train else set()
        differ |= {
            name
            for name, value in asdict(setting.problem).items()
            if value != getattr(base.problem, name)
        }
        assert differ == (set() if setting.changed == "baseline" else {setting.changed})
        if setting.changed not in ("baseline", "n_train"):
            assert getattr(setting.problem, setting.changed) == setting.value
        assert setting.n_test == 1280


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InContextRecall(seq_len=7), "seq_len must be even and at least 4, got 7"),
        (lambda: InContextRecall(noise_fraction=1.0), r"noise_fraction must be in \[0, 1\)"),
        (lambda: InContextRecall(noise_fraction=0.1), "needs noise tokens, got noise_vocab_size 0"),
        (lambda: InContextRecall(noise_vocab_size=-1), "noise_vocab_size"),
        (lambda: InContextRecall(vocab_size=17, noise_vocab_size=16), "beside 16 noise"),
        (lambda: FuzzyRecall(vocab_size=6), r"max_key must be in \[1, 2\]"),
        (lambda: FuzzyRecall(seq_len=11), "seq_len must be at least .* = 12, got 11"),
        (lambda: SelectiveCopy(n_copy=0), "n_copy must be at least 1, got 0"),
        (lambda: SelectiveCopy(seq_len=33), r"exceed 2 \* n_copy \+ 1 = 33, got 33"),
        (lambda: SelectiveCopy(vocab_size=2), "vocab_size must hold"),
        (lambda: Compression(vocab_size=1), "vocab_size must be at least 2, got 1"),
        (lambda: Compression(seq_len=1), "seq_len must be at least 2, got 1"),
        (lambda: Memorization(vocab_size=2), "vocab_size must hold"),
        (lambda: Memorization(seq_len=31), "seq_len must be even"),
        (lambda: Memorization(map_seed=-1), "map_seed must not be negative, got -1"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
