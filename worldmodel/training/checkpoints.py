"""Checkpoint files of a training: the last one's path, and atomic writing and checked reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins import TorchCheckpointIO

from orbits.runs import artefact
from worldmodel.models.checkpoint import check_archive, check_plain


def last_checkpoint(trainer: lightning.Trainer) -> Path | None:
    """Return the path of a training's last checkpoint, written or not; None if it keeps none."""
    keeper = _keeper(trainer)
    if keeper is None:
        return None
    if written := keeper.last_model_path or keeper.best_model_path:
        return Path(written)
    name = f"{keeper.CHECKPOINT_NAME_LAST}{keeper.FILE_EXTENSION}"
    return Path(keeper.dirpath) / name if keeper.dirpath is not None else None


def renew_last_checkpoint(trainer: lightning.Trainer) -> None:
    """Write the last checkpoint once more, if the training has written one."""
    keeper = _keeper(trainer)
    if keeper is not None and keeper.last_model_path:
        trainer.save_checkpoint(keeper.last_model_path, keeper.save_weights_only)


def _keeper(trainer: lightning.Trainer) -> ModelCheckpoint | None:
    """Return the callback that keeps the last checkpoint: the first with ``save_last``, if any."""
    callbacks = [x for x in trainer.checkpoint_callbacks if isinstance(x, ModelCheckpoint)]
    return next((x for x in callbacks if x.save_last), next(iter(callbacks), None))


class AtomicCheckpoints(TorchCheckpointIO):
    """Replace a checkpoint in one step, and read none that is damaged or names a class.

    Lightning copies a new one in, where /tmp is another disk, and checks nothing when it reads.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write a checkpoint; one at a URL as Lightning does."""
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        with artefact.replacing(path) as file:
            try:
                torch.save(checkpoint, file)
            except RuntimeError as error:  # of the archive's writer, which hides the file's error
                if isinstance(error.__context__, OSError):
                    raise error.__context__ from None
                raise

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Read a checkpoint."""
        if "://" not in str(path):
            check_archive(path)
        checkpoint = super().load_checkpoint(path, *args, **kwargs)
        check_plain(path, checkpoint)
        return checkpoint
