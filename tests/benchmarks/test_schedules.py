"""When re-weighting comes on and training stops, and that a killed training ends the same way.

Validation is scripted: what a model scores at a step is given, everything else is a real training.
"""

import shutil

import pytest
import torch

from benchmarks import training
from benchmarks.worker import prepare
from tests.tiers import corners
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.text import TokenModel
from worldmodel.training.callbacks import sharpened

pytestmark = pytest.mark.full

STEPS, EVERY = 40, 5
WARM = {"metric": "val_accuracy", "above": 0.9}
DONE = {"metric": "val_accuracy", "above": 0.99}


class Killed(Exception):
    pass


def config(attention="lssar", checkpoint_steps=8, **schedule):
    return {
        "learner": "problem",
        "seed": 0,
        "model": {
            "attention": attention,
            "attention_args": {"p": 15.0} if attention == "lssar" else None,
            "n_layer": 1,
            "n_head": 1,
            "head_dim": 8,
            "mlp": "none",
            "optimizer": "adamw",
        },
        "data": {
            "problem": "mqar",
            "problem_args": {"vocab_size": 16, "seq_len": 8, "n_pairs": 1},
            "n_val": 8,
            "batch_size": 4,
            "train_seed": 0,
        },
        "lr": 1e-2,
        "steps": STEPS,
        "val_steps": EVERY,
        "training": {"checkpoint_steps": checkpoint_steps, "accelerator": "cpu"},
        **schedule,
    }


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that trains with a scripted accuracy.

    It returns the steps that were trained, how far re-weighting was on at each validation, and
    the weights; or None where the run was killed.
    """
    prepare()
    folder, scratch = tmp_path / "cells" / "key", tmp_path / "cells" / "key.scratch"

    def train(cell, accuracy, killed_at=None, fails_after=False):
        seen = {}

        def validate(self, batch, batch_idx):
            seen[self.global_step] = sharpened(self)
            value = torch.tensor(accuracy(self.global_step))
            self.log("val_accuracy", value, batch_size=8)
            self.log("val_loss", 1 - value, batch_size=8)

        def progress(step, steps):
            if step == killed_at:
                raise Killed

        monkeypatch.setattr(TokenModel, "validation_step", validate)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            model = training.train(cell, folder, scratch, progress)
        except Killed:
            return None
        if not fails_after:
            shutil.rmtree(scratch)  # as when the function of a cell returns
        return read_checkpoint(folder / training.CHECKPOINT)["global_step"], seen, model

    return train


def rises(**at):
    """Return accuracies that rise at steps: ``rises(to_90=10)`` is 0.95 from step 10 on."""
    levels = {"to_90": 0.95, "to_99": 1.0}

    def accuracy(step):
        return max([levels[name] for name, first in at.items() if step >= first], default=0.2)

    return accuracy


def same(one, other):
    assert one[0] == other[0]
    states = one[2].state_dict(), other[2].state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_re_weighting_waits_for_the_accuracy_and_then_stays(run):
    dips = {5: 0.2, 10: 0.95, 15: 0.3}
    steps, seen, model = run(config(sharpen_when=WARM), lambda step: dips.get(step, 0.5))
    assert steps == STEPS
    assert seen == {5: 0, 10: 0} | dict.fromkeys(range(15, STEPS + 1, EVERY), 1)
    assert sharpened(model) == 1


def test_re_weighting_that_is_never_earned_stays_off_and_nothing_stops(run):
    cell = config(sharpen_when={**WARM, "above": 1.0}, stop_when=DONE)
    steps, seen, model = run(cell, lambda step: 1.0)
    assert steps == STEPS, "the stop waits for re-weighting"
    assert set(seen.values()) == {0}
    assert sharpened(model) == 0


def test_training_stops_at_the_first_validation_that_is_good_enough(run):
    steps, seen, _ = run(config("softmax", stop_when=DONE), rises(to_99=12))
    assert steps == 15, "the first validation after step 12"
    assert list(seen) == [5, 10, 15]


def test_training_goes_on_at_the_threshold_itself(run):
    steps, _, _ = run(config("softmax", stop_when={**DONE, "above": 0.95}), rises(to_90=5))
    assert steps == STEPS


def test_a_re_weighted_model_without_a_warm_up_is_re_weighted_from_the_start(run):
    steps, seen, _ = run(config(stop_when=DONE), rises(to_99=20))
    assert steps == 20
    assert set(seen.values()) == {1}


def test_a_warmed_up_model_stops_once_it_is_good_with_re_weighting(run):
    cell = config(sharpen_when=WARM, stop_when=DONE)
    steps, seen, model = run(cell, rises(to_90=10, to_99=25))
    assert steps == 25
    assert seen == {5: 0, 10: 0, 15: 1, 20: 1, 25: 1}
    assert sharpened(model) == 1


def test_the_accuracy_that_switches_re_weighting_on_does_not_stop_training_too(run):
    cell = config(sharpen_when=WARM, stop_when=DONE)
    steps, seen, _ = run(cell, rises(to_99=20))
    assert steps == 25, "at step 20 nothing had been trained or validated with re-weighting"
    assert seen[25] == 1


@pytest.mark.parametrize("killed_at", corners([19, 7, 33], 19))
def test_a_killed_run_ends_as_if_it_had_not_been(run, killed_at):
    cell, accuracy = config(sharpen_when=WARM, stop_when=DONE), rises(to_90=10, to_99=35)
    whole = run(cell, accuracy)
    assert whole[0] == 35
    assert run(cell, accuracy, killed_at=killed_at) is None
    again = run(cell, accuracy)
    assert min(again[1]) > killed_at // 8 * 8, "from the last checkpoint on"
    assert same(whole, again)


def test_a_validation_at_the_step_of_a_checkpoint_is_not_lost_with_a_kill(run):
    cell, accuracy = config(checkpoint_steps=10, sharpen_when=WARM), rises(to_90=20)
    whole = run(cell, accuracy)
    assert run(cell, accuracy, killed_at=23) is None
    assert same(whole, run(cell, accuracy))


def test_a_kill_inside_a_validation_loses_none_of_its_numbers(run):
    cell = config("softmax", checkpoint_steps=STEPS // 2)
    whole = run(cell, rises(to_90=5))

    def dies(step):
        if step == STEPS:
            raise Killed
        return 0.5

    assert run(cell, dies) is None
    again = run(cell, rises(to_90=5))
    assert max(again[1]) == STEPS, "the last step is validated again"
    assert same(whole, again)


def test_a_resumed_run_draws_what_the_killed_one_would_have_drawn(run, monkeypatch):
    step = TokenModel.training_step
    monkeypatch.setattr(TokenModel, "training_step", lambda *args: torch.rand(()) * step(*args))
    whole = run(config("softmax"), rises())
    assert run(config("softmax"), rises(), killed_at=19) is None
    assert same(whole, run(config("softmax"), rises()))


def test_a_failure_after_an_early_stop_does_not_train_further(run):
    cell, accuracy = config("softmax", stop_when=DONE), rises(to_99=12)
    whole = run(cell, accuracy, fails_after=True)
    again = run(cell, accuracy)
    assert again[1] == {}, "nothing is trained or validated any more"
    assert same(whole, again)


def test_the_exponent_rises_over_the_steps_of_a_ramp(run):
    _, seen, model = run(config(sharpen_ramp=20), lambda step: 0.5)
    assert seen == {
        step: pytest.approx(min(1, step / 21)) for step in range(EVERY, STEPS + 1, EVERY)
    }
    assert sharpened(model) == 1


def test_a_model_that_is_never_re_weighted_is_kept_so(run):
    _, seen, model = run(config(sharpen_after=STEPS), lambda step: 0.5)
    assert set(seen.values()) == {0}
    assert sharpened(model) == 0


@pytest.mark.parametrize("killed_at", corners([None, 19, 22, 33], 22))
def test_the_checkpoint_of_the_best_validation_is_kept(run, tmp_path, killed_at):
    cell = config("softmax", checkpoint_steps=10, keep_best=True)
    accuracies = {5: 0.5, 10: 0.7, 15: 0.6, 20: 0.9, 25: 0.9}

    def accuracy(step):
        return accuracies.get(step, 0.2)

    if killed_at is not None:
        assert run(cell, accuracy, killed_at=killed_at) is None
    steps, _, _ = run(cell, accuracy)
    best = read_checkpoint(tmp_path / "cells" / "key" / training.BEST)
    assert (steps, best["global_step"]) == (STEPS, 20), "the first of two equal ones"
