"""Terminal output of a training: one bar of steps with its losses, and its outcome."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
import warnings
from pathlib import Path
from typing import Any, Literal

import lightning
import numpy as np
from lightning.pytorch.callbacks import Callback, ProgressBar
from tqdm import tqdm

from orbits import laws
from orbits.runs import artefact
from orbits.runs.cli import called, next_line
from worldmodel.models.base import GPTModel
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.text import TextModel
from worldmodel.training.checkpoints import last_checkpoint

NO_FAULTS = (
    r".*isinstance\(treespec, LeafSpec\).*",
    r".*does not have many workers.*",
    r"LightningCLI's args parameter.*",
    r"Checkpoint directory .* exists and is not empty.*",
)
"""Warnings of Lightning about itself, or about what is so on purpose: batches are made as fast as
they are read, and a resumed training writes where it stood."""


Form = Literal["text", "json", "quiet"]
"""Output of an evaluation: a table, one JSON object, or the loss alone."""


def quieten() -> None:
    """Hide Lightning's messages about products, absent devices and its own deprecations."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in NO_FAULTS:
        warnings.filterwarnings("ignore", message=message)


def tell_random(trainer: lightning.Trainer) -> None:
    """Print that a force head starts from random weights, and what takes a backbone."""
    if trainer.is_global_zero:
        print(
            "weights    random, as no backbone is given: "
            f"`{called('worldmodel finetune')}` takes one by --pretrained CKPT"
        )


def tell_trained(trainer: lightning.Trainer, model: GPTModel) -> None:
    """Print the last losses of a training, its last checkpoint, and the command that comes next."""
    if not trainer.is_global_zero:
        return
    known = trainer.callback_metrics
    losses = (f", {x} {float(known[x]):.4g}" for x in ("train_loss", "val_loss") if x in known)
    print(f"trained    {trainer.global_step} steps{''.join(losses)}")
    path = last_checkpoint(trainer)
    if path is None or not path.is_file():
        why = "trainer.callbacks has no ModelCheckpoint" if path is None else "no step was left"
        print(f"written    no checkpoint: {why}")
        return
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    print(f"written    {path}\n{next_line(_next(model, shlex.quote(os.fspath(path))))}")


def tell_evaluated(
    trainer: lightning.Trainer, model: GPTModel, path: str, form: Form = "text"
) -> None:
    """Print the losses of a checkpoint as data, or the command that comes after their table."""
    losses = {name: float(value) for name, value in trainer.callback_metrics.items()}
    if not trainer.is_global_zero:
        return
    if form == "json":
        print(json.dumps({"checkpoint": path, **losses}))
    elif form == "quiet":
        print(*(value for name, value in losses.items() if name.endswith("_loss")))
    else:
        print(next_line(_next(model, shlex.quote(path))))


def _next(model: GPTModel, path: str) -> str:
    """Return the command that goes on from a checkpoint."""
    if isinstance(model, ForceModel):
        return f"worldmodel predict {path}"
    if isinstance(model, NextTokenModel):
        return f"worldmodel finetune -c force --pretrained {path}"
    word = "attention-maps" if isinstance(model, TextModel) else "probe"
    return f"worldmodel {word} {path}"


def tell_predicted(path: Path) -> None:
    """Print the error of a file of predictions, its path, and the command that comes next."""
    columns, manifest = artefact.load_arrays(path)
    true, predicted = columns["force"], columns["force_predicted"]
    error = np.median(np.abs(predicted - true) / true)
    systems = len(np.unique(columns["sequence_id"]))
    print(f"predicted  {len(true)} forces in {systems} systems, median error {100 * error:.3g}%")
    law = laws.law_of(manifest)
    of = "" if law in (None, "newton") else f" --law {shlex.quote(str(law))}"
    print(f"written    {path}\n{next_line(f'symreg fit {shlex.quote(os.fspath(path))}{of}')}")


class StepBar(ProgressBar):
    """One bar for a whole training, with its losses, or for the batches of an evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: tqdm | None = None
        self._shown = True

    def disable(self) -> None:
        """Show no bar, as on all processes but the first."""
        self._shown = False

    def enable(self) -> None:
        """Show the bar."""
        self._shown = True

    def get_metrics(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> dict[str, Any]:
        """Return the losses, without the number of the logger's folder."""
        metrics = super().get_metrics(trainer, pl_module)
        return {name: value for name, value in metrics.items() if name != "v_num"}

    def on_train_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Begin the bar at the step at which the training begins."""
        steps = trainer.max_steps if trainer.max_steps > 0 else None
        self._begin("train", steps, trainer.global_step)

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, *_: Any
    ) -> None:
        """Advance to the training's step."""
        # Reading a loss waits for the device, so it is read when the bar is drawn, not at each.
        if self._bar is not None and self._bar.update(trainer.global_step - self._bar.n):
            self._bar.set_postfix(self.get_metrics(trainer, pl_module))

    def on_train_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        """Show the last losses."""
        if self._bar is not None:
            self._bar.set_postfix(self.get_metrics(trainer, pl_module))
        self._end()

    def on_exception(self, *_: Any) -> None:
        """Leave the line to the message."""
        self._end()

    def on_test_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Begin a bar of batches."""
        self._begin("test", _number(trainer.num_test_batches))

    def on_predict_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Begin a bar of batches."""
        self._begin("predict", _number(trainer.num_predict_batches))

    def on_validation_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Begin a bar of batches, unless a training validates."""
        if trainer.state.fn == "validate":
            self._begin("validate", _number(trainer.num_val_batches))

    def _advance(self, *arguments: Any, **_: Any) -> None:
        if arguments[0].state.fn != "fit" and self._bar is not None:
            self._bar.update()

    def _finish(self, *arguments: Any, **_: Any) -> None:
        if arguments[0].state.fn != "fit":
            self._end()

    on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _advance
    on_validation_end = on_test_end = on_predict_end = _finish

    def _begin(self, name: str, total: int | None, initial: int = 0) -> None:
        self._bar = tqdm(
            desc=name, total=total, initial=initial, disable=not self._shown, file=sys.stderr
        )

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def with_bar(callbacks: Callback | list[Callback] | None, shown: bool | None) -> list[Callback]:
    """Return callbacks with a bar, unless one of them is a bar or none is to be shown."""
    known = callbacks if isinstance(callbacks, list) else [callbacks] if callbacks else []
    if shown is False or any(isinstance(callback, ProgressBar) for callback in known):
        return known
    return [*known, StepBar()]


def _number(batches: list[int | float]) -> int | None:
    """Return the number of batches; None if they have no end."""
    total = sum(batches)
    return int(total) if total != float("inf") else None
