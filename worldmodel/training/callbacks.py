"""Lightning callbacks: the last checkpoint, the prediction file, and schedules of attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import BasePredictionWriter, Callback

import attention
from attention.layer import Attention
from attention.parts.selection import Selection
from orbits.runs import artefact
from orbits.runs.manifest import manifest
from worldmodel.data.sequences import joined
from worldmodel.from_checkpoint import DATA, check_ending
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.predictions import save_predictions
from worldmodel.training.checkpoints import renew_last_checkpoint

EXISTS = "exists; choose another file with --out, or replace it with --overwrite"
"""Error about a prediction file that is there already."""


class SaveLastStep(Callback):
    """Save the last step of a training as the last checkpoint.

    Lightning's ``ModelCheckpoint`` with ``save_last`` keeps the last multiple of its interval.
    """

    def on_train_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        """Write the model once more, where its last checkpoint is."""
        renew_last_checkpoint(trainer)


class PredictionWriter(BasePredictionWriter):
    """Write the predictions to one checksummed ``.npz`` with a manifest.

    Args:
        path: The file to write.
        overwrite: Replace a file that is already there.
    """

    def __init__(self, path: str, overwrite: bool = False) -> None:
        super().__init__(write_interval="epoch")
        self.path, self.overwrite = Path(path), overwrite

    def setup(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str
    ) -> None:
        """Refuse before any work: an existing file, another format, or several devices."""
        if stage != "predict":
            return
        check_ending(self.path)
        if self.path.exists() and not self.overwrite:
            raise FileExistsError(f"{self.path} {EXISTS}")
        if trainer.world_size > 1:
            raise ValueError("predictions go to one file: predict with trainer.devices=1")

    def write_on_epoch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        predictions: Sequence[Any],
        batch_indices: Sequence[Any],
    ) -> None:
        """Concatenate the batches and write the file."""
        data = trainer.datamodule  # type: ignore[attr-defined]
        config: dict[str, Any] = {
            "class": type(pl_module).__name__,
            "model": dict(pl_module.hparams),
            "data": dict(data.hparams) if data is not None else None,
        }
        checkpoint = trainer.ckpt_path
        trained_on = read_checkpoint(checkpoint).get(DATA) if checkpoint else config["data"]
        asked = (config["data"] or {}).get("protocol_args") or {}
        config["row"] = _row(config["model"], trained_on or {}, asked.get("shift"))
        inputs = {"checkpoint": artefact.sha256(checkpoint)} if checkpoint else {}
        record = manifest(config, seed=None, device=str(pl_module.device), inputs=inputs)
        save_predictions(self.path, joined(predictions), record)


def _row(model: Mapping[str, Any], data: Mapping[str, Any], shift: Any) -> dict[str, Any]:
    """Return the row of a force model's predictions in a leaderboard.

    Args:
        model: Hyper-parameters of the model.
        data: Those of the data that it was trained on.
        shift: Name or definition of the shift under which it was asked, or None.
    """
    under = shift.get("name", "own") if isinstance(shift, Mapping) else shift
    seed = data.get("seed", 0) if data.get("train_seed") is None else data["train_seed"]
    leak = (data.get("protocol_args") or {}).get("label_leak")
    marks = [f"shift {under}"] if under else []
    marks += [f"{leak} leaked labels per test sequence"] if leak else []
    return {
        "model": attention.label(model["attention"], **(model["attention_args"] or {})),
        "protocol": ", ".join([model["protocol"], *marks]),
        "arm": "pretrained" if model["pretrained"] else "scratch",
        "labels": data.get("n_train") or "unlimited",
        "seed": seed,
    }


def sharpened(module: lightning.LightningModule) -> float:
    """Return the fraction of the second stage of a model's layers; 1 where there is none."""
    return min((m._sharpen for m in module.modules() if isinstance(m, Attention)), default=1.0)


class SharpenWhen(Callback):
    """Train without re-weighting until a validation metric has passed a threshold.

    What re-weighting cannot learn from scratch it keeps once it is learned: the schedule waits
    for the learning, not for a step. The last checkpoint is written again once it has decided, as
    Lightning writes it before the validation and does not repeat that when it resumes.

    Args:
        metric: A logged name that rises, for example ``val_accuracy``.
        above: The threshold.
    """

    def __init__(self, metric: str, above: float) -> None:
        self.metric, self.above = metric, above

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        """Switch re-weighting off at the first step; a resumed run has its state."""
        if trainer.global_step == 0:
            _set_sharpen(pl_module, 0.0)

    def on_validation_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        """Switch re-weighting on for good once the metric has passed the threshold."""
        reached = float(trainer.callback_metrics[self.metric]) > self.above
        if reached and sharpened(pl_module) < 1 and not trainer.sanity_checking:
            _set_sharpen(pl_module, 1.0)
            renew_last_checkpoint(trainer)


class SharpenAfter(Callback):
    """Train without re-weighting up to a step, then with it (LSSA first, LSSAR after).

    Args:
        step: The first training step with re-weighting.
        ramp: Steps over which the exponent rises from 1 to p; 0 for at once.
    """

    def __init__(self, step: int, ramp: int = 0) -> None:
        for label, value in (("step", step), ("ramp", ramp)):
            if value < 0:
                raise ValueError(f"{label} must not be negative, got {value}")
        self.step, self.ramp = step, ramp

    def fraction(self, step: int) -> float:
        """Return the fraction of the second stage at a step, 0 to 1."""
        if step < self.step:
            return 0.0
        return min(1.0, (step - self.step + 1) / (self.ramp + 1))

    def on_train_batch_start(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Set the layers' switch, which is a buffer and so part of the checkpoint."""
        now, step = self.fraction(trainer.global_step), trainer.global_step
        if step == 0 or now != self.fraction(step - 1):
            _set_sharpen(pl_module, now)


def _set_sharpen(module: lightning.LightningModule, fraction: float) -> None:
    layers = [layer for layer in module.modules() if isinstance(layer, Attention)]
    if not layers:
        able = (name for name in attention.names() if attention.get(name).reweights)
        raise ValueError(
            f"a schedule of the re-weighting needs attention that has one: {', '.join(able)}"
        )
    for layer in layers:
        layer.set_sharpen(fraction)


class SelectAfter(Callback):
    """Attend to all keys up to a step, then to those that indexers select (``select: dsa``).

    Indexers learn from the first step on: of all keys, which is their published warm-up, then of
    those they select. In the published one the rest of the model, trained before, does not learn.

    Args:
        step: The first training step with selection.
    """

    def __init__(self, step: int) -> None:
        if step < 0:
            raise ValueError(f"step must not be negative, got {step}")
        self.step = step

    def on_train_batch_start(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Set the switch of every indexer, which is a buffer and so part of the checkpoint."""
        if trainer.global_step not in (0, self.step):
            return
        selections = [part for part in pl_module.modules() if isinstance(part, Selection)]
        if not selections:
            raise ValueError("a schedule of selection needs attention with one: select=dsa")
        for selection in selections:
            selection.set_active(trainer.global_step >= self.step)
