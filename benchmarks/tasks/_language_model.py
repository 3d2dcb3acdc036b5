"""Language models that several tasks ask: how they are trained, and how they are loaded.

The cell of a training has the same address in every task, so ``--reuse`` finds it in the results
of another one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.presets import Training
from benchmarks.task import TRAINING, Measured, Settings, Task
from orbits import artefacts
from symreg.cells import Cell, Progress

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.variants import Variant
    from worldmodel.text import CorpusData
    from worldmodel.text_task import TextTask

VERSION = 1
"""Raised whenever the same settings would train another model."""

TEXT_SEED = 0
"""Seed of the held-out text; a model's seed draws its own training windows."""


@dataclass(frozen=True)
class LanguageModels(Settings):
    """Language models and the text they are trained on.

    Attributes:
        attentions: Attention variants.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        sharpen_after: A further row per re-weighted variant, which trains without re-weighting
            up to this step; 0 for none.
        seeds: Model seeds.
        n_layer: Blocks.
        n_head: Heads per block.
        head_dim: Channels per head.
        seq_len: Tokens of a training window.
        batch_size: Windows per step and device.
        steps: Training steps.
        lr: Largest learning rate.
        optimizer: ``adamw`` or ``muon``.
        weight_decay: Decoupled weight decay.
        path: The text, as for :class:`worldmodel.text.TextData`; None for the standard library of
            the running Python.
        shards: A folder of token files in the text's stead, see
            :class:`worldmodel.shard_data.ShardData`.
        tokenizer: ``bytes``, ``gpt2`` or the path of a ``tokenizer.json``.
        training: How cells are trained.
    """

    attentions: tuple[str, ...] = ("softmax", "lssar")
    exponents: tuple[float, ...] = ()
    sharpen_after: int = 0
    seeds: tuple[int, ...] = (0, 1, 2)
    n_layer: int = 2
    n_head: int = 2
    head_dim: int = 32
    seq_len: int = 64
    batch_size: int = 32
    steps: int = 300
    lr: float = 4e-3
    optimizer: str = "adamw"
    weight_decay: float = 0.1
    path: str | None = None
    shards: str | None = None
    tokenizer: str = "bytes"
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        self.check_not_empty("attentions", "seeds")
        sizes = ("n_layer", "n_head", "head_dim", "seq_len", "batch_size", "steps")
        self.check({**dict.fromkeys(sizes, 1), "seeds": 0, "exponents": 1e-9})
        self.check({"lr": 1e-9, "weight_decay": 0})
        if not 0 <= self.sharpen_after < self.steps:
            raise ValueError(
                f"sharpen_after must be in [0, {self.steps}), got {self.sharpen_after}"
            )
        if self.path is not None and self.shards is not None:
            raise ValueError(f"give path {self.path!r} or shards {self.shards!r}, not both")

    def models(self) -> Iterator[tuple[Variant, int]]:
        """Yield every variant with every seed."""
        from benchmarks.variants import variants

        for seed in self.seeds:
            for variant in variants(self.attentions, self.exponents, self.sharpen_after):
                yield variant, seed


def training_cell(
    settings: LanguageModels, variant: Variant, seed: int, mask_at: int | None = None
) -> Cell:
    """Return the cell that trains one model.

    Args:
        settings: Size, text and schedule.
        variant: The attention.
        seed: The model's seed.
        mask_at: Place of a fixed token in every window, see
            :class:`benchmarks.masked_text.MaskedTextData`; None for none.
    """
    from benchmarks import learners

    config: dict[str, Any] = {
        "task": "language model",
        "task_version": VERSION,
        "line_kind": TRAINING,
        "row": {"model": variant.label, "seed": seed},
        "seed": seed,
        "learner": "text" if settings.shards is None else "shards",
        "model": {
            "attention": variant.attention,
            "attention_args": variant.arguments(settings.seq_len) or None,
            "n_layer": settings.n_layer,
            "n_head": settings.n_head,
            "head_dim": settings.head_dim,
            "optimizer": settings.optimizer,
            "weight_decay": settings.weight_decay,
        },
        "data": {
            "path": settings.path if settings.shards is None else settings.shards,
            "tokenizer": settings.tokenizer,
            "seq_len": settings.seq_len,
            "batch_size": settings.batch_size,
            "seed": TEXT_SEED,
            "train_seed": seed,
        },
        "lr": settings.lr,
        "steps": settings.steps,
        "sharpen_after": variant.sharpen_after,
    }
    if settings.tokenizer.endswith(".json"):
        config["tokenizer_sha256"] = artefacts.sha256(settings.tokenizer)
    learners.check(config)
    path, tokenizer = config["data"]["path"], config["data"]["tokenizer"]
    config["corpus_sha256"] = _corpus_sha256(config["learner"], path, tokenizer)
    if changes := settings.training.changes():
        config["training"] = changes
    if mask_at is not None:
        config["learner"] = "masked_text"
        config["data"]["mask_at"] = config["row"]["mask_at"] = mask_at
    return Cell("language_model", config, label=f"train {variant.label}, seed {seed}")


def train(
    config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Train a language model; keep its checkpoint and curves."""
    from benchmarks import training
    from orbits.manifest import manifest

    with training.trained(config, folder, progress, seed=config["seed"]):
        loss = training.last_value(folder / training.CURVES, "val_loss")
        record = manifest(config, seed=config["seed"], device=training.device(config))
        return {
            "metrics": {"val_loss": loss},
            "manifest": {**record, "corpus": corpus(config).corpus_record},
        }


def corpus(config: Mapping[str, Any]) -> CorpusData:
    """Return the text of a training cell.

    Raises:
        ValueError: The text is another one now than when the run began.
    """
    from benchmarks import learners
    from worldmodel.text import CorpusData

    data = learners.data(config)
    assert isinstance(data, CorpusData)
    if data.corpus_record["sha256"] != config["corpus_sha256"]:
        raise ValueError(
            f"the corpus {data.corpus_record['corpus']} has changed since this run began; "
            "use --overwrite to start again"
        )
    return data


def load(checkpoint: Path) -> TextTask:
    """Return the trained model of a cell's folder, on the device that is there, ready to ask."""
    import torch

    from benchmarks.training import CHECKPOINT
    from worldmodel.tasks import load_task
    from worldmodel.text_task import TextTask

    task = load_task(checkpoint / CHECKPOINT)
    assert isinstance(task, TextTask)
    return task.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def record(folder: Path) -> dict[str, Any]:
    """Return the configuration of a finished training cell, of its folder."""
    return _manifest(folder)["config"]


def _manifest(folder: Path) -> dict[str, Any]:
    from symreg.cells import RECORD

    return artefacts.load_record(folder / RECORD)["line"]["manifest"]


def measured(
    task: Task, config: Mapping[str, Any], model: Path, metrics: Mapping[str, Measured]
) -> dict[str, Any]:
    """Return the result line of a question to a trained model, of its folder."""
    from benchmarks.training import CHECKPOINT, device
    from orbits.manifest import manifest

    about = manifest(
        config,
        seed=config["seed"],
        device=device(config),
        inputs={"model": artefacts.sha256(model / CHECKPOINT)},
    )
    about["corpus"] = _manifest(model)["corpus"]
    return task.line(config, metrics, manifest=about)


def held_out(config: Mapping[str, Any], length: int, n_tokens: int) -> Tensor:
    """Return windows of the held-out text of a training cell, int64 [N, length + 1].

    Windows of every length read the same tokens, as far as they are cut off at whole windows.

    Args:
        config: The training cell's configuration.
        length: Tokens that a window predicts.
        n_tokens: Tokens to predict in all.

    Raises:
        ValueError: The text is shorter, or another one now than when the run began.
    """
    n = n_tokens // length
    sized = {**config["data"], "seq_len": length, "n_test": n, "n_val": n}
    windows = corpus({**config, "data": sized}).sequences("test", n)
    if len(windows) < n:  # type: ignore[arg-type]
        raise ValueError(
            f"the held-out text has {len(windows)} windows of {length} tokens, "  # type: ignore[arg-type]
            f"{n} are asked: give more text or ask for fewer tokens"
        )
    return windows.__getitems__(list(range(n)))["tokens"]  # type: ignore[attr-defined]


@functools.cache
def _corpus_sha256(learner: str, path: str | None, tokenizer: str) -> str:
    if learner == "shards":
        from worldmodel.shard_data import ShardData

        assert path is not None
        return ShardData(path, tokenizer).corpus_record["sha256"]
    from worldmodel.corpus import read_corpus

    return read_corpus(path).sha256()
