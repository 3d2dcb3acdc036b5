"""Trainings in tests: a trainer that prints nothing, one that stops, and checkpoints of models."""

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint


def trainer(folder, steps=1, callbacks=(), **changes):
    """Return a trainer on the CPU that writes checkpoints only if callbacks are given."""
    options = {
        "max_steps": steps,
        "accelerator": "cpu",
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
        "check_val_every_n_epoch": None,
        "val_check_interval": 2,
        "default_root_dir": folder,
        "callbacks": list(callbacks),
        "enable_checkpointing": bool(callbacks),
    }
    return lightning.Trainer(**options | changes)


def save(model, path, **data):
    """Write the checkpoint of a model that was not trained, and return the path.

    Args:
        model: A LightningModule.
        path: Where.
        **data: Settings of the data, as a training would keep them.
    """
    run = trainer(path.parent)
    run.strategy.connect(model)
    content = run._checkpoint_connector.dump_checkpoint(weights_only=True)
    if data:
        content["datamodule_hyper_parameters"] = data
    run.strategy.checkpoint_io.save_checkpoint(content, path)
    return path


class Stopped(Exception):
    """Ends a training in the middle."""


class StopAt(lightning.Callback):
    """Stop before a step, as a kill would."""

    def __init__(self, step):
        self.step = step

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.global_step >= self.step:
            raise Stopped


def assert_same_weights(model, other):
    """Check that two models have the same weights to the last bit."""
    expected = other.state_dict()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=0, msg=name)


def with_and_without_a_kill(model, data, folder, steps):
    """Return a model that was trained at once and one whose training was killed and resumed.

    Args:
        model: Makes the model, with the same weights each time.
        data: Makes its data.
        folder: Where the checkpoint at half of the steps goes, ``half.ckpt``.
        steps: Steps of training.
    """
    whole, killed, resumed = (model() for _ in range(3))
    trainer(folder, steps).fit(whole, data())
    half = ModelCheckpoint(folder, filename="half", every_n_train_steps=steps // 2)
    with pytest.raises(Stopped):
        trainer(folder, steps, [half, StopAt(steps // 2)]).fit(killed, data())
    with torch.no_grad():
        for parameter in resumed.parameters():
            parameter += 1  # weights that are not read from the checkpoint would show
    rest = trainer(folder, steps)
    rest.fit(resumed, data(), ckpt_path=folder / "half.ckpt", weights_only=True)
    assert rest.global_step == steps
    return whole, resumed
