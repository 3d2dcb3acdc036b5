"""Bigram-backcopy: its rows, its least loss, and what its attention is said to do."""

import numpy as np
import pytest
import torch

from benchmarks.recall.backcopy import STUDY, Backcopy, BackcopySweep, transitions
from benchmarks.recall.backcopy_cells import look
from benchmarks.recall.data import ProblemData
from benchmarks.recall.measures import IGNORE
from worldmodel.models.text import TokenModel

SMALL = Backcopy(n_symbols=12, n_triggers=3, seq_len=40)


def best(problem, rows):
    """Return the distributions of a reader that knows the chain, [N, L, V]."""
    shares = np.zeros((*rows.tokens.shape, problem.vocab_size))
    for row, tokens in enumerate(rows.tokens):
        for place, token in enumerate(tokens):
            before = tokens[place - 1] if place else problem.n_symbols
            if token == problem.n_symbols:
                shares[row, place] = 1 / problem.vocab_size
            elif token < problem.n_triggers and before != problem.n_symbols:
                shares[row, place, before] = 1
            else:
                shares[row, place, :-1] = transitions(problem.n_symbols)[token]
    return shares


@pytest.mark.parametrize("marker", [None, 0, 1, 7, 39])
def test_what_follows_a_trigger_is_what_came_before_it(marker):
    problem = Backcopy(12, 3, 40, marker)
    rows = problem.examples("test", 0, np.arange(200))
    assert ((rows.tokens == 12).sum(axis=1) == (marker is not None)).all()
    if marker is not None:
        assert (rows.tokens[:, marker] == 12).all()
    copies = problem.triggered(rows.tokens) & (rows.targets != IGNORE)
    before = np.roll(rows.tokens, 1, axis=1)
    np.testing.assert_array_equal(rows.targets[copies], before[copies])
    assert 0.1 < copies.mean() < 0.5
    # The first symbol of a chain and the marker are not asked for; all else is the next token.
    fresh = {None: {}, 0: {0}}.get(marker, {marker - 1 if marker else 0, marker})
    for place in range(39):
        expected = np.full(200, IGNORE) if place in fresh else rows.tokens[:, place + 1]
        np.testing.assert_array_equal(rows.targets[:, place], expected)


def test_ordinary_symbols_follow_the_chain():
    rows = SMALL.examples("train", 1, np.arange(3000))
    ordinary = ~SMALL.triggered(rows.tokens) & (rows.targets != IGNORE)
    counts = np.zeros((12, 12))
    np.add.at(counts, (rows.tokens[ordinary], rows.targets[ordinary]), 1)
    enough = counts.sum(axis=1) > 2000
    assert enough.sum() >= 4
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares[enough], transitions(12)[enough], atol=0.05)


def test_knowing_the_chain_leaves_no_loss_above_the_least_and_not_knowing_it_does():
    rows = SMALL.examples("test", 0, np.arange(64))
    shares = best(SMALL, rows)
    known = SMALL.measure_distributions(shares, "test", 0, "")
    assert known["excess"].value == pytest.approx(0, abs=1e-12)
    assert known["excess_copy"].value == pytest.approx(0, abs=1e-12)
    assert SMALL.measure(shares.argmax(axis=2), "test", 0, "")["copied"].value == 100
    uniform = np.full_like(shares, 1 / SMALL.vocab_size)
    unknown = SMALL.measure_distributions(uniform, "test", 0, "")
    assert unknown["excess_copy"].value == pytest.approx(np.log(SMALL.vocab_size))
    chain = shares.copy()  # knows the chain and does not copy
    triggered = SMALL.triggered(rows.tokens)
    chain[triggered, :-1] = transitions(12)[rows.tokens[triggered]]
    blind = SMALL.measure_distributions(chain, "test", 0, "")
    assert blind["excess"].value > 0.1
    assert blind["excess_copy"].value > blind["excess"].value


def test_without_triggers_nothing_is_copied():
    problem = Backcopy(12, 0, 40)
    answers = np.zeros((4, 40), np.int64)
    assert problem.measure(answers, "test", 0, "") == {}
    shares = np.full((4, 40, 13), 1 / 13)
    assert set(problem.measure_distributions(shares, "test", 0, "")) == {"excess"}


def test_a_look_at_uniform_attention_sees_uniform_attention():
    torch.manual_seed(0)
    model = TokenModel(13, attention="softmax", n_layer=1, n_head=1, head_dim=8).eval()
    with torch.no_grad():
        model.gpt.blocks[0].attention.query.weight.zero_()
    data = ProblemData("backcopy", {"n_symbols": 12, "n_triggers": 3, "marker_at": 4}, n_test=8)
    found = {name: metric.value for name, metric in look(model, data).items()}
    assert found["sink"] == pytest.approx(found["uniform"], rel=1e-5)
    assert found["received"] == pytest.approx(found["uniform_received"], rel=1e-5)
    assert found["density"] == pytest.approx(100 - found["sink"], rel=1e-5)
    tokens = data.problem.examples("test", 0, np.arange(8)).tokens
    copies = data.problem.triggered(tokens)
    seen = 100 / np.broadcast_to(np.arange(1, 65), copies.shape)
    assert found["sink_copying"] == pytest.approx(seen[copies].mean(), rel=1e-4)
    copies[:, 0] = True
    assert found["sink_idle"] == pytest.approx(seen[~copies].mean(), rel=1e-4)


def test_controls_are_trained_on_every_chain_and_others_on_one():
    settings = BackcopySweep(attention=("softmax", "elastic"), seeds=(0,), lrs=(0.003,))
    asked = [
        (trial.label, *exercise.setting.values())
        for exercise in settings.exercises()
        for trial in settings.trials(exercise)
    ]
    assert asked == [
        ("softmax", 4, 0),
        ("elastic", 4, 0),
        ("softmax", 4, "none"),
        ("softmax", 4, 4),
        ("softmax", 4, 16),
        ("softmax", 4, 48),
        ("softmax", 0, 0),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_triggers": 31}, "n_symbols must be at least 33, got 32"),
        ({"marker_at": 64}, r"marker_at must be in \[0, 64\), got 64"),
    ],
)
def test_an_impossible_chain_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Backcopy(**given)


def test_a_control_that_is_not_trained_is_refused():
    with pytest.raises(ValueError, match="controls"):
        BackcopySweep(attention=("elastic",))


def test_a_linear_mixer_has_no_attention_to_look_at():
    settings = BackcopySweep(attention=("softmax", "gla"))
    with pytest.raises(ValueError, match="gla"):
        STUDY.cells(settings)
