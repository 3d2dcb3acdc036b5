"""Checkpoints that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins import TorchCheckpointIO

from orbits import artefacts


class AtomicCheckpoints(TorchCheckpointIO):
    """Replace a checkpoint in one step: Lightning copies it in, where /tmp is another disk."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write a checkpoint; one at a URL as Lightning does."""
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        with artefacts.replacing(path) as file:
            torch.save(checkpoint, file)
