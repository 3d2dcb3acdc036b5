"""The state-trained model: its scale, its rows, what it refuses, and that it learns."""

import numpy as np
import pytest
import torch

from tests.worldmodel.trainings import trainer as quiet_trainer
from worldmodel.data.orbits import OrbitData
from worldmodel.models.state import StateModel, state_rows

pytestmark = pytest.mark.usefixtures("quiet")

ARGS = {"n_points": 16, "n_bins": 64}
SMALL = {"protocol_args": ARGS, "n_layer": 1, "n_head": 2, "head_dim": 8}


def data(**changes):
    settings = {"protocol_args": ARGS, "population": "force", "n_val": 64, "n_train": 30}
    return OrbitData(**settings | changes)


def trainer(steps):
    return quiet_trainer(None, steps, val_check_interval=steps)


def truth(one, split, indices):
    """States of the planet's rows by the protocol itself, masses in logarithms."""
    state = one.protocol.batch(0, split, indices, "force")["state"][:, 1::2]
    return np.concatenate([state[..., :4], np.log(state[..., 4:])], axis=-1)


def test_the_scale_is_that_of_the_training_states_and_survives_a_resume(tmp_path):
    task, run = StateModel(warmup_steps=1, **SMALL), trainer(1)
    run.fit(task, data())
    values = truth(data(), "train", np.arange(30)).reshape(-1, 6)
    np.testing.assert_allclose(task.head.mean, values.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(task.head.std, values.std(axis=0), rtol=1e-2)

    run.save_checkpoint(tmp_path / "state.ckpt")
    again = StateModel(warmup_steps=1, **SMALL)
    other = data(train_seed=5)  # whose scale differs
    trainer(2).fit(again, other, ckpt_path=tmp_path / "state.ckpt", weights_only=True)
    torch.testing.assert_close(again.head.mean, task.head.mean, rtol=0, atol=0)
    torch.testing.assert_close(again.head.std, task.head.std, rtol=0, atol=0)


def test_it_answers_in_physical_units_at_every_row_of_the_planet():
    task = StateModel(**SMALL)
    task.head.mean.copy_(torch.arange(6.0))
    task.head.std.fill_(2.0)
    batch = data().sequences("test", 5).as_batch()
    assert state_rows(batch).equal(batch["body"] == 1)
    assert task(batch).shape == (5 * 8, 6)
    answer = task.head.physical(task.head.standardise(batch["state"][state_rows(batch)]))
    expected = truth(data(), "test", np.arange(5)).reshape(-1, 6)
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.full
def test_it_learns_the_state():
    task = StateModel(warmup_steps=5, **SMALL)
    few = data(n_train=16, batch_size=16)
    trainer(80).fit(task, few)
    batch = few.sequences("train", 16).as_batch()
    assert float(task._loss(batch)) < 0.2  # answering the mean gives 1


@pytest.mark.parametrize(
    ("task", "given", "message"),
    [
        ({}, {"population": "pretrain"}, "set data.population=force"),
        ({"protocol_args": {**ARGS, "label_leak": 2}}, {}, "label_leak=0, got 2"),
    ],
)
def test_data_it_cannot_learn_from_are_refused(task, given, message):
    with pytest.raises(ValueError, match=message):
        trainer(1).fit(StateModel(**SMALL | task), data(**given))


def test_the_state_is_true_where_a_protocol_publishes_a_wrong_one():
    one = data(protocol="paper")
    run = trainer(1)
    task = StateModel(protocol="paper", warmup_steps=1, **SMALL)
    run.fit(task, one)
    published = data(protocol="paper").protocol
    assert published.as_published
    assert not one.protocol.as_published
    states = [p.batch(0, "train", [0], "force")["state"] for p in (published, one.protocol)]
    assert not np.allclose(*states, equal_nan=True)
    learned = truth(one, "train", np.arange(30)).reshape(-1, 6)
    np.testing.assert_allclose(task.head.mean, learned.mean(axis=0), rtol=1e-4, atol=1e-5)
