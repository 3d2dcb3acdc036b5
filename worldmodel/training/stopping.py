"""Ctrl-C and SIGTERM end a training between two steps, with its last checkpoint written."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities.exceptions import SIGTERMException

from worldmodel.training.checkpoints import last_checkpoint

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit codes by which a shell and a scheduler tell what ended a program: 130 and 143."""


class StopBetweenSteps(Callback):
    """Stop on Ctrl-C as Lightning stops on SIGTERM, save, and tell how to go on.

    Lightning answers SIGTERM once a step is over, on all processes at the same one, so that what
    is saved then is what an uninterrupted training had there. By itself it saves nothing and
    exits with 0, which a scheduler takes for a training that is done.
    """

    def __init__(self) -> None:
        self._code, self._process = TERMINATED, os.getpid()

    def _take(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Handle Ctrl-C in the main thread; Lightning restores the handler when it ends."""
        self._process = os.getpid()
        first = self._code == TERMINATED
        if first and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._interrupt)

    on_sanity_check_start = on_train_start = _take
    on_validation_start = on_test_start = on_predict_start = _take

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a process that was forked since: its parent answers
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second one stops at once
        self._code = INTERRUPTED
        signal.raise_signal(signal.SIGTERM)

    def on_predict_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Stop a prediction, as Lightning stops a training."""
        if trainer.received_sigterm:
            raise SIGTERMException

    def on_exception(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        exception: BaseException,
    ) -> None:
        """Save the last checkpoint, say how to go on, and set the exit code."""
        if not isinstance(exception, SIGTERMException):
            return
        exception.code = self._code
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the checkpoint must be written
        path = last_checkpoint(trainer) if trainer.state.fn == TrainerFn.FITTING else None
        if path is not None:
            trainer.save_checkpoint(path, weights_only=False)
        if trainer.is_global_zero:
            _tell(trainer, path)


def _tell(trainer: lightning.Trainer, path: Path | None) -> None:
    hint = "; nothing was saved"
    if path is not None:
        hint = f" at step {trainer.global_step}; resume: the same command with --ckpt_path {path}"
    print(f"stopped{hint}", file=sys.stderr)
