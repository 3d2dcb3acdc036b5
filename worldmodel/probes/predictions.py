"""Prediction files: those of a checkpoint's force head, for ``python -m symreg leaderboard``.

A force model has its own predictions. For another checkpoint, a force head is fine-tuned with the
first of the seeds and without a label leak, as :mod:`worldmodel.probes.force.force_magnitude` does.
The file of a force model that was trained on leaked labels holds sequences of which none leaked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from orbits.runs.cell import Cell, Outcome
from orbits.runs.manifest import manifest
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.models.predictions import save_predictions
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import OUTSIDE, Checkpoint
from worldmodel.probes.force.figures import magnitudes
from worldmodel.probes.force.force_magnitude import PROBE as FORCE_MAGNITUDE
from worldmodel.probes.force.head import (
    HEAD_SETTINGS,
    PREDICTIONS,
    STEPS,
    UNLIMITED,
    at,
    head_cell,
    own_predictions,
    stopped,
)
from worldmodel.probes.force.measures import measured
from worldmodel.probes.settings import Settings

CAPTION = (
    "Predicted against true magnitude of the force in solar mass AU / year^2 on held-out "
    "sequences: at most 3000 points of each prediction file. Line: equality."
)
HEAD = "head"


class Predictions(Probe):
    """The predictions probe."""

    name = "predictions"
    about = "a file for `python -m symreg leaderboard`, in the folder of its cell"
    uses = (*HEAD_SETTINGS, "seeds")
    options = ("stop_heads",)
    trains = True
    asks = ("force",)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Refuse a world without forces to predict."""
        return FORCE_MAGNITUDE.refusal(checkpoint, dataclasses.replace(settings, scratch=False))

    def needs(self, checkpoint: Checkpoint, settings: Settings) -> dict[str, Cell]:
        """Return the training of a head; a force model has its own."""
        if checkpoint.can("force"):
            return {}
        return {HEAD: head_cell(checkpoint, settings, 0, settings.seeds[0])}

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Write the file, and return an outcome that names it and counts its points."""
        setting: dict[str, Any]
        if checkpoint.can("force"):
            columns = own_predictions(checkpoint, settings)
            outside = checkpoint.arm == OUTSIDE
            setting = {"labels": checkpoint.labels or ("unknown" if outside else UNLIMITED)}
        else:
            columns = pieces.needed(HEAD, PREDICTIONS)
            setting = {
                "labels": settings.labels,
                "steps": settings.steps or STEPS,
                **stopped(settings),
            }
        points = at(columns, "fresh sequences" if checkpoint.leaks else "unlabelled")
        row = {**checkpoint.row, "labels": setting["labels"]}
        if "heads" in setting:
            row["arm"] = f"{row['arm']}, stopped"
        used = {name: getattr(settings, name) for name in (*self.uses, *self.options)}
        proof = manifest(
            {"probe": self.name, "row": row, **checkpoint.arguments, "settings": used, **setting},
            seed=settings.seeds[0],
            inputs={"checkpoint": checkpoint.sha256},
        )
        tensors = {name: torch.from_numpy(c) for name, c in points.items() if name != "rows"}
        save_predictions(pieces.folder / PREDICTIONS, tensors, proof)
        metrics = {"points": len(points["rows"]), **measured([points])}
        return [Outcome(metrics, files={"predictions": PREDICTIONS}, setting=setting)]

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw predicted against true magnitudes, one panel per file."""
        path = magnitudes(results, out, out / "figures" / f"{self.name}_magnitudes.png")
        return [Picture(CAPTION, [path])] if path else []


PROBE = Predictions()
