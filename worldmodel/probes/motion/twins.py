"""The untrained twin of a checkpoint for the questions of motion and of forces."""

from __future__ import annotations

from typing import Any

from worldmodel.controls.ridge import with_ridge_head
from worldmodel.models.orbit import ForceModel
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.force.head import labelled
from worldmodel.probes.settings import Settings


def twins(checkpoint: Checkpoint, settings: Settings) -> dict[str, Any]:
    """Return random weights by their arm; a model from outside may have none.

    Those of a force model have a head that ridge regression fits: a fresh one answers nothing, and
    any trained head would be better than that.
    """
    seed = settings.seeds[0]
    found = checkpoint.twins(seed)
    for twin in found.values():
        if isinstance(twin, ForceModel):
            with_ridge_head(twin, labelled(checkpoint, settings, 0, seed).labelled_dataloader())
            return {"untrained + ridge": twin}
    return found
