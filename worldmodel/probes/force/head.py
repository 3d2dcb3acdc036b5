"""Force heads on a checkpoint: their training and their predictions.

A head is fine-tuned with all weights, in a cell of its own, so that all probes read one training.
Its predictions are kept as the columns of a prediction file, one array each, with ``rows``: to
which of :data:`ROWS` a point belongs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from orbits.runs import artefact
from orbits.runs.cell import Cell, Outcome
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import already_collated, joined
from worldmodel.models.export import read_model
from worldmodel.models.orbit import ForceModel, OrbitModel
from worldmodel.models.predictions import force_columns, read_rows
from worldmodel.probes.base import device
from worldmodel.probes.checkpoint import OUTSIDE, Checkpoint
from worldmodel.probes.force.measures import Columns
from worldmodel.probes.force.stopping import BestOnHeldOut, held_out
from worldmodel.probes.settings import Settings
from worldmodel.training.trainer import quiet_trainer

ROWS = ("unlabelled", "leaked labels", "fresh sequences")
"""Rows of test sequences without a label; rows whose labels leaked; sequences no label of which
ever leaked. Only with a label leak are the first and the last different."""

UNLIMITED = "unlimited"
"""Label budget of a force model with new labels at every step."""

HEAD_SETTINGS = ("n_sequences", "steps", "labels", "data_seed")
"""The settings that a head depends on beside its seed."""
PREDICTIONS = "predictions.npz"

BATCH = 64
STEPS = 1000
LEARNING_RATE_SHARE = 0.5
"""Share of the checkpoint's learning rate for fine-tuning; training from scratch has all of it."""

_POINTS_AT_ONCE = 2**15


def shape(model: OrbitModel) -> dict[str, Any]:
    """Return the hyper-parameters by which another model takes a model's backbone."""
    names = ("optimizer", "weight_decay")
    return {**model.architecture, **{name: model.hparams[name] for name in names}}


def warmup(steps: int) -> int:
    """Return the steps of warm-up of a training."""
    return max(1, min(50, steps // 10))


class HeldOut(Dataset):
    """Test sequences, then as many fresh ones, with a force where it is predicted.

    That is at the planet's rows of the second half, and at leaked labels wherever they are.
    Sequences are fresh from the data's ``n_test`` on: of these no label can have leaked.
    """

    def __init__(self, data: OrbitData, n: int) -> None:
        first_fresh = data.hparams["n_test"]
        self.n = min(n, first_fresh)
        self.indices = np.r_[: self.n, first_fresh : first_fresh + self.n]
        self.sequences = data.sequences("test", first_fresh + self.n)
        self.leaked = data.sequences("test", self.n, fine_tuning=True)
        self.at_once = data.hparams["eval_batch_size"]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitems__(self, places: list[int]) -> dict[str, Tensor]:
        """Return the collated batch of some places in this order."""
        indices = self.indices[places].tolist()
        batch = self.sequences.__getitems__(indices)
        leaked = self.leaked.__getitems__(indices)["force"]
        leaked[batch["sequence_id"] >= self.n] = torch.nan
        batch["force"] = torch.where(leaked.isfinite(), leaked, batch["force"])
        return batch

    def batches(self) -> DataLoader:
        """Return all sequences in order, in batches of the data's size for evaluation."""
        return DataLoader(self, batch_size=self.at_once, collate_fn=already_collated)


def own_data(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the data settings in a force model's checkpoint; none for other models."""
    if not isinstance(checkpoint.model, ForceModel):
        return {}
    return read_model(checkpoint.path).get("datamodule_hyper_parameters", {})


def labelled(checkpoint: Checkpoint, settings: Settings, leak: int, seed: int) -> OrbitData:
    """Return labelled sequences of the world; training seed ``seed`` draws its own of them.

    With a label leak of 2, training also draws from the first ``n_sequences`` test sequences. The
    data of a force model are those it was trained on, as far as its checkpoint tells.
    """
    own, world = own_data(checkpoint), checkpoint.world
    return OrbitData(
        protocol=checkpoint.protocol.name,
        protocol_args={**world["protocol_args"], "label_leak": leak},
        population="force",
        n_train=own.get("n_train") or settings.labels,
        n_test=own.get("n_test", settings.n_sequences) if leak else settings.n_sequences,
        batch_size=BATCH,
        eval_batch_size=max(16, _POINTS_AT_ONCE // (1 + checkpoint.protocol.n_points)),
        seed=own.get("seed", settings.data_seed),
        train_seed=seed,
    )


def head_cell(
    checkpoint: Checkpoint, settings: Settings, leak: int, seed: int, from_scratch: bool = False
) -> Cell:
    """Return the cell that trains a force head and leaves its predictions.

    Args:
        checkpoint: The checkpoint.
        settings: Labels, held-out sequences and steps.
        leak: Labels of every test sequence that training may see: 0 or 2.
        seed: Seed of the head, of the training sequences and of their order.
        from_scratch: Start from random weights instead of the checkpoint's, with as many sequences
            as pre-training and fine-tuning saw together, and the learning rate of pre-training.
    """
    steps = settings.steps or STEPS
    total = scratch_steps(checkpoint, steps) if from_scratch else steps
    case = checkpoint.case("training", leak=leak, steps=total, head_seed=seed)
    arguments = {
        **checkpoint.arguments,
        "settings": {name: getattr(settings, name) for name in _head_settings(settings)},
        "leak": leak,
        "seed": seed,
        "from_scratch": from_scratch,
    }
    if from_scratch:
        case = dataclasses.replace(case, arm="scratch")
    return Cell(train_head, case, arguments, inputs={"checkpoint": checkpoint.path})


def _head_settings(settings: Settings) -> tuple[str, ...]:
    """Return the settings that a head's address holds: heads that do not stop have an older one."""
    return (*HEAD_SETTINGS, "stop_heads") if settings.stop_heads else HEAD_SETTINGS


def train_head(
    checkpoint: Path,
    law: str,
    named: tuple[str, int] | None,
    settings: Mapping[str, Any],
    leak: int,
    seed: int,
    from_scratch: bool,
    folder: Path,
) -> Outcome:
    """Train a force head; see :func:`head_cell` for the arguments."""
    base = Checkpoint.load(checkpoint, law, named)
    columns = trained_head(base, Settings(**settings), leak, seed, from_scratch)
    artefact.save_arrays(folder / PREDICTIONS, columns, {})
    return Outcome(files={"predictions": PREDICTIONS}, device=device(trains=True))


def trained_head(
    checkpoint: Checkpoint, settings: Settings, leak: int, seed: int, from_scratch: bool
) -> Columns:
    """Return the predictions of a force head that is trained now."""
    steps = settings.steps or STEPS
    lightning.seed_everything(checkpoint.control_seed(seed), verbose=False)
    data = labelled(checkpoint, settings, leak, seed)
    total = scratch_steps(checkpoint, steps) if from_scratch else steps
    lr = checkpoint.model.hparams["lr"] * (1 if from_scratch else LEARNING_RATE_SHARE)
    model = ForceModel(lr=lr, warmup_steps=warmup(total), **shape(checkpoint.model))
    if not from_scratch:
        model.load_backbone(checkpoint.path)
    if settings.stop_heads:
        stop = BestOnHeldOut(held_out(data, settings.labels), total)
        quiet_trainer(total, callbacks=[stop]).fit(model, datamodule=data)
    else:
        quiet_trainer(total).fit(model, datamodule=data)
    return predictions(HeldOut(data, settings.n_sequences), partial(predicted, model))


def stopped(settings: Settings) -> dict[str, str]:
    """Return what the setting of a row says of heads that stop before their last step."""
    return {"heads": "stopped on held-out labels"} if settings.stop_heads else {}


def scratch_steps(checkpoint: Checkpoint, steps: int) -> int:
    """Return the steps from scratch that see the sequences of pre-training and of fine-tuning.

    A checkpoint that does not tell its batch is taken to have had this one.
    """
    assert checkpoint.steps is not None  # as the probe made sure
    return steps + math.ceil(checkpoint.steps * (checkpoint.batch_size or BATCH) / BATCH)


def own_predictions(checkpoint: Checkpoint, settings: Settings) -> Columns:
    """Return the own predictions of a force model, or of a model from outside."""
    data = labelled(checkpoint, settings, checkpoint.protocol.label_leak, checkpoint.seed)
    predict = force_columns if checkpoint.arm == OUTSIDE else predicted
    return predictions(HeldOut(data, settings.n_sequences), partial(predict, checkpoint.model))


def predicted(model: OrbitModel, batches: DataLoader) -> dict[str, Tensor]:
    """Return the columns of a force model's predictions."""
    parts: Any = quiet_trainer().predict(model, dataloaders=batches)
    return {name: column.cpu() for name, column in joined(parts).items()}


def predictions(
    held_out: HeldOut, predict: Callable[[DataLoader], Mapping[str, Tensor]]
) -> Columns:
    """Return the columns of predictions, and which of :data:`ROWS` each point belongs to."""
    columns = {name: column.numpy() for name, column in predict(held_out.batches()).items()}
    sequence, row = columns["sequence_id"], 1 + 2 * columns["step"]
    mask = held_out.sequences.protocol.label_mask("test", np.arange(held_out.n))
    leaked = mask[np.minimum(sequence, held_out.n - 1), row] & (sequence < held_out.n)
    columns["rows"] = np.where(sequence >= held_out.n, 2, leaked)
    return columns


def at(columns: Columns, rows: str) -> Columns:
    """Return the points of one of :data:`ROWS`."""
    here = columns["rows"] == ROWS.index(rows)
    return {name: column[here] for name, column in columns.items()}


class VectorModel(ForceModel):
    """Regress force vectors that are scaled into the unit interval, as published.

    The loss is the mean squared error of both components, in that scale. One batch holds all
    labelled sequences once; ``draws`` says how often each of them was drawn.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.head = nn.Linear(self.gpt.width, 2)  # type: ignore[assignment]

    def on_fit_start(self) -> None:
        """Leave the scale alone: it is in the data."""

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        """Return the vectors at every row, [B, T, 2]."""
        return {"vector": self.head(self.hidden(batch))}

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        rows = read_rows(batch)
        weight = batch["draws"][:, None].expand(rows.shape)[rows]
        error = (self(batch) - batch["force"][rows]).square().mean(dim=-1)
        return (weight * error).sum() / weight.sum()


class Draws(IterableDataset):
    """Batches of a few sequences drawn with replacement, as the number of times each was drawn.

    A batch of 64 of eight sequences holds each eight times: this is that batch at an eighth of
    the cost.
    """

    def __init__(self, batch: dict[str, Tensor], seed: int) -> None:
        self.batch, self.seed = batch, seed

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        n = len(self.batch["tokens"])
        rng = np.random.default_rng(self.seed)
        while True:
            draws = rng.multinomial(BATCH, np.full(n, 1 / n))
            yield {**self.batch, "draws": torch.from_numpy(draws).float()}
