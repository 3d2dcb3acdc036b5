"""Prediction files: what a checkpoint's force head answers, for ``python -m symreg leaderboard``.

A force model answers itself. Of another checkpoint, a force head is fine-tuned with the first of
the seeds and without a label leak, as :mod:`worldmodel.probes.force_magnitude` does. A force model
that was trained on leaked labels answers for sequences of which none leaked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch

from orbits import pictures
from orbits.manifest import manifest
from worldmodel.callbacks import save_predictions
from worldmodel.probes import Line
from worldmodel.probes._force_figures import magnitudes
from worldmodel.probes._force_head import (
    HEAD_SETTINGS,
    STEPS,
    UNLIMITED,
    at,
    finetuned,
    own_answers,
)
from worldmodel.probes._force_measures import measured
from worldmodel.probes.force_magnitude import PROBE as FORCE_MAGNITUDE
from worldmodel.tasks import ForceTask

if TYPE_CHECKING:
    from worldmodel.probing import Settings, Store, Subject


class Predictions:
    """The probe."""

    name = "predictions"
    about = "a file for `python -m symreg leaderboard`, in the folder predictions of the results"
    uses = HEAD_SETTINGS
    trains = True
    captions: ClassVar = {
        "magnitudes": (
            "Predicted against true magnitude of the force in solar mass AU / year^2 on held-out "
            "sequences: at most 3000 points of each prediction file. Line: equality."
        ),
    }

    def refusal(self, subject: Subject, settings: Settings) -> str | None:
        """Refuse what has no forces to predict."""
        return FORCE_MAGNITUDE.refusal(subject, settings)

    def measure(self, subject: Subject, settings: Settings, store: Store) -> list[Line]:
        """Write the file, and return its line; it names the file and counts its points."""
        if isinstance(subject.task, ForceTask):
            columns = own_answers(subject, settings, store)
            setting = {"labels": subject.labels or UNLIMITED}
        else:
            columns = finetuned(subject, settings, store, leak=0, seed=settings.seeds[0])
            setting = {"labels": settings.labels, "steps": settings.steps or STEPS}
        points = at(columns, "fresh sequences" if subject.leaks else "unlabelled")
        row = {**subject.row, "labels": setting["labels"]}
        config = {**store.config, "row": row, **setting}
        inputs = {"checkpoint": subject.sha256}
        path = store.file("predictions.npz")
        kept = {name: torch.from_numpy(c) for name, c in points.items() if name != "rows"}
        save_predictions(path, kept, manifest(config, seed=settings.seeds[0], inputs=inputs))
        metrics = {"points": len(points["rows"]), **measured([points])}
        line = {"name": subject.model, "arm": subject.row["arm"], "setting": setting}
        return [{**line, "metrics": metrics, "files": {"predictions": store.relative(path)}}]

    def draw(self, lines: Sequence[Line], out: Path) -> dict[str, Path]:
        """Draw predicted against true magnitudes, one panel per file."""
        path = out / "figures" / f"{self.name}_magnitudes.png"
        return {"magnitudes": pictures.save(magnitudes(lines, out), path)}


PROBE = Predictions()
