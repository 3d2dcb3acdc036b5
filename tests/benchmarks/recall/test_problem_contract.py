"""What every problem owes: pure rows, separate streams, the stated shapes, short refusals."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import benchmarks.recall
from benchmarks.recall import mad_settings
from benchmarks.recall import problem as problems
from benchmarks.recall.backcopy import Backcopy
from benchmarks.recall.measures import IGNORE
from benchmarks.recall.mqar import MQAR
from benchmarks.recall.mqar_compositional import Compositional
from benchmarks.recall.mqar_forgetting import Forgetting
from benchmarks.recall.mqar_mixture import TEST, TRAIN, MQARMixture
from benchmarks.recall.mqar_repeated import Repeated
from benchmarks.recall.passkey_short import Passkey
from benchmarks.recall.problem import SPLITS, generators
from benchmarks.recall.regbench import RegBench
from benchmarks.recall.skills.compression import Compression
from benchmarks.recall.skills.fuzzy_recall import FuzzyRecall
from benchmarks.recall.skills.in_context_recall import InContextRecall
from benchmarks.recall.skills.memorization import Memorization
from benchmarks.recall.skills.selective_copy import SelectiveCopy

PROBLEMS = {
    "mqar": MQAR(vocab_size=64, seq_len=32, n_pairs=3),
    "mqar_mixture": MQARMixture(64, (16, 24, 32), (3, 4, 5), (5, 2, 3)),
    "mqar_filled": MQAR(vocab_size=64, seq_len=32, n_pairs=3, random_non_queries=True),
    "mqar_repeated": Repeated(vocab_size=64, seq_len=32, n_pairs=3, n_passes=3),
    "mqar_forgetting": Forgetting(vocab_size=64, seq_len=32, n_pairs=4, n_updates=2),
    "mqar_compositional": Compositional(vocab_size=64, seq_len=32, n_pairs=4),
    "in_context_recall": InContextRecall(seq_len=32),
    "noisy_recall": InContextRecall(32, 32, noise_vocab_size=16, noise_fraction=0.4),
    "fuzzy_recall": FuzzyRecall(seq_len=40),
    "selective_copy": SelectiveCopy(seq_len=40, n_copy=6),
    "compression": Compression(),
    "memorization": Memorization(),
    "regbench": RegBench(max_strings=12, max_length=12),
    "passkey": Passkey(seq_len=64),
    "backcopy": Backcopy(seq_len=32),
}


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]


@pytest.mark.parametrize("split", SPLITS)
def test_a_row_depends_on_its_own_index_alone(problem, split):
    indices = np.array([7, 0, 3, 3, 11])
    batch = problem.examples(split, 5, indices)
    for row, index in enumerate(indices):
        np.random.seed(row)  # noqa: NPY002  what the published code draws from must not matter
        alone = problem.examples(split, 5, np.array([index]))
        np.testing.assert_array_equal(alone.tokens[0], batch.tokens[row])
        np.testing.assert_array_equal(alone.targets[0], batch.targets[row])


def test_no_row_is_shared_between_splits_or_seeds(problem):
    rows = [
        problem.examples(split, seed, np.arange(20)).tokens
        for split in SPLITS
        for seed in (0, 1, 2**40)
    ]
    assert len(np.unique(np.concatenate(rows), axis=0)) == 3 * 3 * 20


@pytest.mark.parametrize("split", SPLITS)
def test_shapes_and_ranges(problem, split):
    made = problem.examples(split, 0, np.arange(30))
    for array in (made.tokens, made.targets):
        assert array.shape == (30, problem.seq_len)
        assert array.dtype == np.int64
    assert made.tokens.min() >= 0
    assert made.tokens.max() < problem.vocab_size
    asked = made.targets[made.targets != IGNORE]
    assert asked.min() >= 0
    assert asked.max() < problem.vocab_size
    assert (made.targets != IGNORE).any(axis=1).all()
    assert problem.examples(split, 0, np.arange(0)).tokens.shape == (0, problem.seq_len)


def test_bad_addresses_are_refused(problem):
    with pytest.raises(ValueError, match="unknown split 'dev'; choose one of train, val, test"):
        problem.examples("dev", 0, np.arange(1))
    with pytest.raises(ValueError, match="seed must be in"):
        problem.examples("train", -1, np.arange(1))
    with pytest.raises(ValueError, match="indices must not be negative, got -2"):
        problem.examples("train", 0, np.array([1, -2]))


def test_every_address_has_its_own_stream():
    # 2^32 next to 1 and 0: words of different numbers must not run into each other.
    numbers = (0, 1, 2**32, 2**32 + 1, 2**63 - 1)
    drawn = {
        next(generators(name, split, seed, [index])).random()
        for name in ("mqar", "passkey")
        for split in SPLITS
        for seed in numbers
        for index in numbers
    }
    assert len(drawn) == 2 * 3 * 5 * 5


def test_every_problem_is_tested_and_found_by_its_file():
    assert set(problems.names()) == {each.name for each in PROBLEMS.values()}
    for each in PROBLEMS.values():
        plain = each.to_json()
        assert (
            problems.get(plain["problem"], **json.loads(json.dumps(plain["problem_args"]))) == each
        )


def test_an_unknown_problem_or_setting_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"unknown problem 'base'; choose from backcopy, "):
        problems.get("base")
    with pytest.raises(ValueError, match=r"unknown problem '\.\./mqar'"):
        problems.get("../mqar")
    with pytest.raises(ValueError, match=r"unknown setting of mqar 'length'; choose from"):
        problems.get("mqar", length=3)


def test_every_problem_shows_an_example():
    for kind in {type(problem) for problem in PROBLEMS.values()}:
        assert ">>> " in kind.__doc__


ROOT = Path(benchmarks.recall.__file__).parents[2]
PRINT_DIGEST = """
import hashlib, numpy as np
from benchmarks.recall.regbench import RegBench
from benchmarks.recall.skills.fuzzy_recall import FuzzyRecall
from benchmarks.recall.skills.memorization import Memorization
digest = hashlib.sha256()
for problem in (RegBench(), FuzzyRecall(), Memorization()):
    made = problem.examples("test", 0, np.arange(20))
    digest.update(made.tokens.tobytes() + made.targets.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.full
def test_rows_do_not_depend_on_the_hash_seed():
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT_DIGEST], cwd=ROOT, capture_output=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    }  # fmt: skip
    assert [len(digest.strip()) for digest in printed] == [64]


@pytest.mark.parametrize(
    "problem",
    [
        *(MQAR(seq_len=n, n_pairs=k) for n, k in ((64, 4), (128, 8), (256, 16), (512, 64))),
        *(MQAR(seq_len=n, n_pairs=k) for n, k, *_ in (*TRAIN, *TEST)),
        *(setting.problem for setting in mad_settings.settings()),
        RegBench(),
        Passkey(seq_len=2048),
    ],
    ids=str,
)
def test_published_settings_make_rows(problem):
    made = problem.examples("test", 0, np.arange(2))
    assert made.tokens.shape == (2, problem.seq_len)
    assert made.tokens.max() < problem.vocab_size
