"""Force heads on a checkpoint: how they are trained and asked.

A head is fine-tuned with all weights. Its answers at the asked rows are kept as the columns of a
prediction file, one array each, with ``rows``: to which of :data:`ROWS` a point belongs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import lightning
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from worldmodel.checkpoint import read_checkpoint
from worldmodel.data import OrbitData
from worldmodel.probes._force_measures import Columns
from worldmodel.quiet import quiet_trainer
from worldmodel.tasks import BACKBONE, SHAPE, ForceTask, OrbitTask, read_rows

if TYPE_CHECKING:
    from worldmodel.probing import Settings, Store, Subject

ROWS = ("unlabelled", "leaked labels", "fresh sequences")
"""Rows of test sequences without a label; rows whose labels leaked; sequences no label of which
ever leaked. Only with a label leak are the first and the last different."""

UNLIMITED = "unlimited"
"""Labels of a force model that saw new ones at every step."""

HEAD_SETTINGS = ("n_sequences", "seeds", "steps", "labels", "data_seed")
"""The settings that heads depend on: the same for all probes that ask them, so that each finds
what another one trained."""

BATCH = 64
STEPS = 1000
LEARNING_RATE_SHARE = 0.5
"""Fine-tuning takes this share of the checkpoint's learning rate, pre-training from scratch all."""

_POINTS_AT_ONCE = 2**15


def shape(task: OrbitTask) -> dict[str, Any]:
    """Return the hyper-parameters by which another task takes a task's backbone."""
    names = (*BACKBONE, *SHAPE, "optimizer", "weight_decay")
    return {name: task.hparams[name] for name in names}


def warmup(steps: int) -> int:
    """Return the steps of warm-up of a training."""
    return max(1, min(50, steps // 10))


def shared(store: Store) -> Store:
    """Return where trained heads are kept, so that each probe finds what another one trained."""
    settings = {name: store.config["settings"][name] for name in HEAD_SETTINGS}
    return type(store)(store.out, {**store.config, "probe": "force heads", "settings": settings})


class HeldOut(Dataset):
    """Test sequences, then as many fresh ones, with a force where it is asked.

    It is asked at the planet's rows of the second half, and at leaked labels wherever they are.
    Sequences are fresh from the data's ``n_test`` on: of these no label can have leaked.

    Args:
        data: The labelled data; its protocol says whether labels leak.
        n: Number of test sequences, at most; ``n_test`` if that is less.
    """

    def __init__(self, data: OrbitData, n: int) -> None:
        first_fresh = data.hparams["n_test"]
        self.n = min(n, first_fresh)
        self.indices = np.r_[: self.n, first_fresh : first_fresh + self.n]
        self.asked = data.sequences("test", first_fresh + self.n)
        self.leaked = data.sequences("test", self.n, fine_tuning=True)
        self.at_once = data.hparams["eval_batch_size"]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitems__(self, places: list[int]) -> dict[str, Tensor]:
        """Return the collated batch of some places in this order."""
        indices = self.indices[places].tolist()
        batch = self.asked.__getitems__(indices)
        leaked = self.leaked.__getitems__(indices)["force"]
        leaked[batch["sequence_id"] >= self.n] = torch.nan
        batch["force"] = torch.where(leaked.isfinite(), leaked, batch["force"])
        return batch

    def batches(self) -> DataLoader:
        """Return all sequences in order, in batches of the data's size for evaluation."""
        return DataLoader(self, batch_size=self.at_once, collate_fn=_already_collated)


def own_data(subject: Subject) -> dict[str, Any]:
    """Return what a force model's checkpoint tells of its data; nothing of another checkpoint's."""
    if not isinstance(subject.task, ForceTask):
        return {}
    return read_checkpoint(subject.path).get("datamodule_hyper_parameters", {})


def labelled(subject: Subject, settings: Settings, leak: int, seed: int) -> OrbitData:
    """Return labelled sequences of the asked world, of which training seed ``seed`` sees its own.

    With a label leak of 2, training also draws from the first ``n_sequences`` test sequences. The
    data of a force model are those it was trained on, as far as its checkpoint tells.
    """
    known = own_data(subject)
    return OrbitData(
        protocol=subject.protocol.name,
        protocol_args={**subject.protocol_args, "label_leak": leak},
        population="force",
        n_train=known.get("n_train") or settings.labels,
        n_test=known.get("n_test", settings.n_sequences),
        batch_size=BATCH,
        eval_batch_size=max(16, _POINTS_AT_ONCE // (1 + subject.protocol.n_points)),
        seed=known.get("seed", settings.data_seed),
        train_seed=seed,
    )


def finetuned(
    subject: Subject, settings: Settings, store: Store, leak: int, seed: int, scratch: bool = False
) -> Columns:
    """Train a force head and return its answers, or read them back.

    Args:
        subject: The checkpoint.
        settings: Labels, held-out sequences and steps.
        store: Of the asking probe.
        leak: Labels of every test sequence that training may see: 0 or 2.
        seed: Seed of the head, of the training sequences and of their order.
        scratch: Start from random weights instead of the checkpoint's, with as many sequences as
            pre-training and fine-tuning saw together, and the learning rate of pre-training.
    """
    steps = settings.steps or STEPS

    def compute() -> Columns:
        lightning.seed_everything(subject.control_seed(seed), verbose=False)
        data = labelled(subject, settings, leak, seed)
        total = scratch_steps(subject, steps) if scratch else steps
        lr = subject.task.hparams["lr"] * (1 if scratch else LEARNING_RATE_SHARE)
        task = ForceTask(lr=lr, warmup_steps=warmup(total), **shape(subject.task))
        if not scratch:
            task.load_backbone(subject.path)
        quiet_trainer(total).fit(task, datamodule=data)
        return answers(HeldOut(data, settings.n_sequences), partial(predicted, task))

    config = {"leak": leak, "seed": seed, "scratch": scratch, "steps": steps}
    return shared(store).arrays(config, compute)


def scratch_steps(subject: Subject, steps: int) -> int:
    """Return in how many steps scratch sees the sequences of pre-training and of fine-tuning.

    A checkpoint that does not tell its batch is taken to have had this one.
    """
    return steps + math.ceil(subject.steps * (subject.batch_size or BATCH) / BATCH)


def own_answers(subject: Subject, settings: Settings, store: Store) -> Columns:
    """Return a force model's own answers."""

    def compute() -> Columns:
        data = labelled(subject, settings, subject.protocol.label_leak, subject.seed)
        return answers(HeldOut(data, settings.n_sequences), partial(predicted, subject.task))

    return shared(store).arrays({"own": True}, compute)


def predicted(task: OrbitTask, batches: DataLoader) -> dict[str, Tensor]:
    """Return the columns of a force model's answers."""
    parts: Any = quiet_trainer().predict(task, dataloaders=batches)
    return {name: torch.cat([part[name].cpu() for part in parts]) for name in parts[0]}


def answers(held_out: HeldOut, predict: Callable[[DataLoader], Mapping[str, Tensor]]) -> Columns:
    """Return the columns of anyone's answers, and which of :data:`ROWS` each point belongs to."""
    columns = {name: column.numpy() for name, column in predict(held_out.batches()).items()}
    sequence, row = columns["sequence_id"], 1 + 2 * columns["step"]
    mask = held_out.asked.protocol.label_mask("test", np.arange(held_out.n))
    leaked = mask[np.minimum(sequence, held_out.n - 1), row] & (sequence < held_out.n)
    columns["rows"] = np.where(sequence >= held_out.n, 2, leaked)
    return columns


def at(columns: Columns, rows: str) -> Columns:
    """Return the points of one of :data:`ROWS`."""
    chosen = columns["rows"] == ROWS.index(rows)
    return {name: column[chosen] for name, column in columns.items()}


class VectorTask(ForceTask):
    """Regress force vectors that are scaled into the unit interval, as published.

    The loss is the mean squared error of both components, in that scale. One batch holds all
    labelled sequences once; ``draws`` says how often each of them was drawn.

    Args:
        **kwargs: As for :class:`worldmodel.tasks.OrbitTask`.
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

    Args:
        batch: The sequences, each once.
        seed: Seed of the draws.
    """

    def __init__(self, batch: dict[str, Tensor], seed: int) -> None:
        self.batch, self.seed = batch, seed

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        n = len(self.batch["tokens"])
        rng = np.random.default_rng(self.seed)
        while True:
            draws = rng.multinomial(BATCH, np.full(n, 1 / n))
            yield {**self.batch, "draws": torch.from_numpy(draws).float()}


def _already_collated(batch: Any) -> Any:
    return batch
