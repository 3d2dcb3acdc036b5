"""Trainings in tests: a trainer that prints nothing, one that stops, and checkpoints of models."""

import lightning


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


def save(model, path):
    """Write the weights and settings of a model that was not trained, and return the path."""
    run = trainer(path.parent)
    run.strategy.connect(model)
    run.save_checkpoint(path, weights_only=True)
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
