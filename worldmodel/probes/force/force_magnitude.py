"""The force-magnitude probe: does a fine-tuned head infer the masses, or remember them?

As published, fine-tuning sees two labels of every test sequence, in dozens of passes. Where the
planet's mass is invisible, a model that remembers which label belongs to which sequence then
seems to know it. So heads are trained without and with this leak, and evaluated at rows of the
same sequences that have no label, at the leaked labels, and on sequences that never leaked.

A head that fine-tunes too long knows less than the features it started from: a ridge read-out of
the checkpoint and one of random weights stand beside it, and ``stop_heads`` stops it in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from orbits.best_observer import best_observer
from orbits.runs.cell import Cell, Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.controls.ridge import ridge_readout
from worldmodel.controls.true_state_knn import NAME as KNN
from worldmodel.controls.true_state_knn import true_state_knn
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import joined
from worldmodel.models.orbit import ForceModel
from worldmodel.models.predictions import central_columns, read_rows
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.force.figures import inference
from worldmodel.probes.force.head import (
    HEAD_SETTINGS,
    PREDICTIONS,
    ROWS,
    STEPS,
    UNLIMITED,
    HeldOut,
    at,
    head_cell,
    labelled,
    own_predictions,
    predictions,
    scratch_steps,
    shape,
    stopped,
)
from worldmodel.probes.force.measures import Columns, measured
from worldmodel.probes.settings import Settings

LEAKS = (0, 2)


CAPTION = (
    "R2 of log F, and the exponents that least squares finds in the predicted magnitudes, "
    "on held-out sequences. Blue: no label of a test sequence in the training set; "
    "vermilion: two of each. Circles: rows without a label; crosses: the leaked labels; "
    "squares: sequences that never leaked. Predictions that are not positive, which a head "
    "of the raw force may give, have no logarithm: the table's column unusable says how "
    "many were left out, and figures of different shares are of different points. What is "
    "known at the circle but not at the square was remembered. Bars: 95% over sequences; "
    "dotted: the law. Controls: a model trained from scratch with the steps of both "
    "trainings, ridge read-outs of the model and of an untrained one, k-NN on the "
    "true state, and what the observations allow at best."
)


class ForceMagnitude(Probe):
    """The force-magnitude probe."""

    name = "force_magnitude"
    about = "does a fine-tuned force head infer the masses, or remember leaked labels?"
    uses = (*HEAD_SETTINGS, "seeds", "scratch", "stop_heads")
    trains = True
    inside = "it fine-tunes a GPT of this package with a force head"

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Refuse a world without labelled two-body systems, and a control of unknown length."""
        if "force" not in checkpoint.protocol.populations:
            return f"protocol {checkpoint.protocol.name!r} has no labelled forces; take fixed"
        trains = not isinstance(checkpoint.model, ForceModel)
        if checkpoint.steps is None and settings.scratch and trains:
            return "it does not tell its steps, which the control from scratch takes; --no-scratch"
        return None

    def needs(self, checkpoint: Checkpoint, settings: Settings) -> dict[str, Cell]:
        """Return the trainings of heads; a force model has its own."""
        if isinstance(checkpoint.model, ForceModel):
            return {}
        cells = {
            f"head_{leak}_{seed}": head_cell(checkpoint, settings, leak, seed)
            for leak in LEAKS
            for seed in settings.seeds
        }
        if settings.scratch:
            for seed in settings.seeds:
                cells[f"scratch_{seed}"] = head_cell(checkpoint, settings, 0, seed, True)
        return cells

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the measures of every predictor, at each kind of row."""
        outcomes = []
        for predictor in pieces.progress(list(_predictors(checkpoint, settings, pieces))):
            trainings = [training() for training in predictor.trainings]
            for rows in ROWS:
                points = [at(columns, rows) for columns in trainings]
                if len(points[0]["rows"]):
                    setting = {**predictor.setting, "rows": rows}
                    case = {"variant": predictor.variant, "arm": predictor.arm, "setting": setting}
                    outcomes.append(Outcome(measured(points), **case))
        return outcomes

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the figures of merit, one panel each and one row per predictor."""
        path = inference(results, out / "figures" / f"{self.name}_inference.png")
        return [Picture(CAPTION, [path])]


@dataclass(frozen=True)
class _Predictor:
    """A model or control with one or more trainings, which are computed or read when called."""

    variant: str | None
    arm: str | None
    setting: dict[str, Any]
    trainings: list[Callable[[], Columns]]


def _predictors(checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> Iterator[_Predictor]:
    seeds = settings.seeds
    labels = labelled(checkpoint, settings, 0, seeds[0]).n_train
    if isinstance(checkpoint.model, ForceModel):
        leaks: tuple[int, ...] = (checkpoint.protocol.label_leak,)
        setting: dict[str, Any] = {"leak": leaks[0], "labels": checkpoint.labels or UNLIMITED}
        own = partial(pieces.arrays, {"own": True}, partial(own_predictions, checkpoint, settings))
        yield _Predictor(None, None, setting, [own])
    else:
        leaks, steps = LEAKS, settings.steps or STEPS
        for leak in leaks:
            setting = {"leak": leak, "labels": labels, "steps": steps, **stopped(settings)}
            roles = [f"head_{leak}_{seed}" for seed in seeds]
            heads: list[Any] = [partial(pieces.needed, role, PREDICTIONS) for role in roles]
            yield _Predictor(None, None, setting, heads)
        if settings.scratch:
            total = scratch_steps(checkpoint, steps)
            setting = {"leak": 0, "labels": labels, "steps": total, **stopped(settings)}
            heads = [partial(pieces.needed, f"scratch_{seed}", PREDICTIONS) for seed in seeds]
            yield _Predictor(None, "scratch", setting, heads)
    control = partial(_control, checkpoint, settings, pieces)
    for leak in leaks:
        setting = {"leak": leak, "labels": labels}
        read_outs: list[tuple[str, str, Callable[..., Any]]] = [
            ("ridge", "own ridge", lambda seed: partial(_own_ridge, checkpoint)),
            ("untrained + ridge", "ridge", lambda seed: partial(_ridge, checkpoint, seed)),
        ]
        for arm, name, fit in read_outs:
            trainings: list[Any] = [partial(control, name, leak, x, fit(x)) for x in seeds]
            yield _Predictor(None, arm, setting, trainings)
    for leak in leaks:
        nearest = partial(control, KNN, leak, seeds[0], _nearest)
        yield _Predictor(KNN, "oracle", {"leak": leak, "labels": labels}, [nearest])
    for answer, field in (("geometric mean", "force"), ("mean", "mean_force")):
        best = partial(control, f"ceiling, {answer}", 0, seeds[0], partial(_ceiling, field))
        yield _Predictor("best observer", "ceiling", {"answer": answer}, [best])


def _control(
    checkpoint: Checkpoint,
    settings: Settings,
    pieces: Pieces,
    name: str,
    leak: int,
    seed: int,
    predict: Callable[[OrbitData, DataLoader], dict[str, Tensor]],
) -> Columns:
    def compute() -> Columns:
        data = labelled(checkpoint, settings, leak, seed)
        return predictions(HeldOut(data, settings.n_sequences), partial(predict, data))

    return pieces.arrays({"control": name, "leak": leak, "seed": seed}, compute)


def _own_ridge(checkpoint: Checkpoint, data: OrbitData, test: DataLoader) -> dict[str, Tensor]:
    return ridge_readout(checkpoint.model, data.labelled_dataloader(), test)


def _ridge(
    checkpoint: Checkpoint, seed: int, data: OrbitData, test: DataLoader
) -> dict[str, Tensor]:
    lightning.seed_everything(checkpoint.control_seed(seed), verbose=False)
    return ridge_readout(ForceModel(**shape(checkpoint.model)), data.labelled_dataloader(), test)


def _nearest(data: OrbitData, test: DataLoader) -> dict[str, Tensor]:
    return true_state_knn(data.labelled_dataloader(), test)


def _ceiling(field: str, data: OrbitData, test: DataLoader) -> dict[str, Tensor]:
    """Return the best predictions that observations allow: of ln F with the masses, or of F."""
    columns = []
    for batch in test:
        indices = batch["sequence_id"].numpy()
        best = best_observer(data.protocol, data.hparams["seed"], "test", indices)
        force = torch.from_numpy(getattr(best, field))
        values = central_columns(batch, force.float())
        if field == "force":
            masses = {"log_m1": best.log_m1, "log_m2": best.log_m2}
            values |= {
                name: torch.from_numpy(mass)[read_rows(batch).nonzero(as_tuple=True)[0]]
                for name, mass in masses.items()
                if mass is not None
            }
        columns.append(values)
    return joined(columns)


PROBE = ForceMagnitude()
