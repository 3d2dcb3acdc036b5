"""Language models that several tasks ask: their size, their text and how they are trained.

The cell of a training has the same address in every task, so ``--reuse`` finds it in the results
of another one. How they are asked is in :mod:`benchmarks.tasks._asked`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.presets import Training
from benchmarks.task import TRAINING, Settings
from orbits import artefacts
from symreg.cells import Cell, Progress, Skipped
from worldmodel.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.variants import Variant
    from worldmodel.text import CorpusData
    from worldmodel.tokenizer import Tokenizer, Tokens

VERSION = 2
"""Raised whenever the same settings would train another model."""

TEXT_SEED = 0
"""Seed of the held-out text; a model's seed draws its own training windows."""


@dataclass(frozen=True)
class LanguageModels(Settings):
    """Language models and the text they are trained on.

    Attributes:
        attentions: Attention variants, linear mixers and the papers' ablations of both.
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
        corpus: A published corpus, from the hub or from a copy of its files at ``path``.
        column: The column of Parquet or JSON lines that holds the text; None for ``text``.
        shards: A folder of token files in the text's stead, see
            :class:`worldmodel.shard_data.ShardData`.
        tokenizer: ``bytes``, ``gpt2`` or the path of a ``tokenizer.json``.
        checkpoints: Checkpoints of language models to ask in place of trained ones, each a path
            or ``LABEL:SEED=PATH``: the name of its row, and which of its seeds it is.
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
    corpus: str | None = None
    column: str | None = None
    shards: str | None = None
    tokenizer: str = "bytes"
    checkpoints: tuple[str, ...] = ()
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
        for name in ("path", "corpus", "column"):
            given = getattr(self, name)
            if given is not None and self.shards is not None:
                raise ValueError(f"give {name} {given!r} or shards {self.shards!r}, not both")

    def shared(self) -> dict[str, Any]:
        """Return the values of the fields that all settings of language models have."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(LanguageModels)}

    def trainings(self) -> list[Training]:
        """Return how models are trained; checkpoints are not."""
        return [] if self.checkpoints else super().trainings()

    def check_given(self, preset: Settings) -> None:
        """Refuse changes of a preset that change nothing: with checkpoints, of the training.

        Raises:
            ValueError: One was given.
        """
        ours = {each.name for each in dataclasses.fields(LanguageModels)} - {"checkpoints"}
        for name in sorted(ours) if self.checkpoints else ():
            if getattr(self, name) != getattr(preset, name):
                raise ValueError(
                    f"with checkpoints nothing is trained, so {name} changes nothing: leave it"
                )
        super().check_given(preset)

    def models(self) -> Iterator[tuple[Variant, int]]:
        """Yield every variant with every seed."""
        from benchmarks.variants import variants

        for seed in self.seeds:
            for variant in variants(self.attentions, self.exponents, self.sharpen_after):
                yield variant, seed


@dataclass(frozen=True)
class AskedText(LanguageModels):
    """Language models and the text that they are asked.

    Attributes:
        eval_path: Another text to ask than the models' own, its held-out part: as ``path``.
        eval_corpus: As ``corpus``, of the text to ask.
        eval_column: As ``column``, of the text to ask.
    """

    eval_path: str | None = None
    eval_corpus: str | None = None
    eval_column: str | None = None

    def text(self) -> dict[str, str]:
        """Return where another text to ask is; nothing if it is the models' own."""
        given = {"path": self.eval_path, "corpus": self.eval_corpus, "column": self.eval_column}
        return {name: value for name, value in given.items() if value is not None}

    def other_text(self) -> dict[str, Any]:
        """Return what says which other text is asked, for the configuration of a question.

        Raises:
            FileNotFoundError: There is no such text.
            ValueError: It is out of reach, or there is none.
        """
        text = self.text()
        return {"text": {**text, "sha256": text_sha256(**text)}} if text else {}


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
            **text_of(settings),
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
    if settings.shards is None:
        config["corpus_sha256"] = text_sha256(**text_of(settings))
    else:
        config["corpus_sha256"] = _shards_sha256(settings.shards, settings.tokenizer)
    if changes := settings.training.changes():
        config["training"] = changes
    if mask_at is not None:
        config["learner"] = "masked_text"
        config["data"]["mask_at"] = config["row"]["mask_at"] = mask_at
    return Cell("language_model", config, label=f"train {variant.label}, seed {seed}")


@contextlib.contextmanager
def skipping() -> Iterator[None]:
    """Skip a cell whose text no network reaches."""
    from worldmodel.documents import Unreachable

    try:
        yield
    except Unreachable as error:
        raise Skipped(str(error)) from None


@skipping()
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
            f"the corpus {data.corpus_record['corpus']} has changed since its checksum was taken; "
            "use --overwrite to train again"
        )
    return data


def held_out(config: Mapping[str, Any], length: int, n_tokens: int) -> Tensor:
    """Return windows of the held-out text of a training, int64 [N, length + 1].

    Windows of every length read the same tokens, as far as they are cut off at whole windows.

    Args:
        config: The training cell's configuration, or its ``learner``, ``data`` and
            ``corpus_sha256``.
        length: Tokens that a window predicts.
        n_tokens: Tokens to predict in all.

    Raises:
        ValueError: The text is shorter, or another one now than when its checksum was taken.
    """
    n, data = n_tokens // length, config["data"]
    if config["learner"] == "text":  # what it was trained on need not be tokenised again
        places = {name: data.get(name) for name in ("path", "corpus", "column")}
        tokenizer = load_tokenizer(data["tokenizer"])
        return cut(stream(tokenizer, config["corpus_sha256"], **places)[0], length, n_tokens)
    # Shards have one held-out file: what is asked begins behind what training validated on, at
    # the same token for every length.
    validated = corpus(config).hparams["n_val"] * data["seq_len"]
    n_val = max(1, math.ceil(validated / n_tokens)) * n
    found = corpus({**config, "data": {**data, "seq_len": length, "n_test": n, "n_val": n_val}})
    try:
        windows = found.sequences("test", n)
    except ValueError:  # none is left
        windows = range(0)  # type: ignore[assignment]
    return first(windows, length, n)


def first(windows: Any, length: int, n: int) -> Tensor:
    """Return the first windows of a text, int64 [n, length + 1].

    Raises:
        ValueError: There are fewer.
    """
    if len(windows) < n:
        raise ValueError(
            f"the held-out text has {len(windows)} windows of {length} tokens, {n} are asked: "
            "give more text or ask for fewer tokens"
        )
    return windows.__getitems__(list(range(n)))["tokens"]


def stream(tokenizer: Tokenizer, sha256: str, **text: str | None) -> tuple[Tokens, dict[str, Any]]:
    """Return the test part of a text that is only asked, and what it is.

    Args:
        tokenizer: Of the model that is asked.
        sha256: What the text's checksum was when the run began.
        **text: Where it is, as for :func:`worldmodel.corpus.read_corpus`.

    Raises:
        Unreachable: The text is out of reach now.
        ValueError: It has changed.
    """
    from worldmodel.corpus import read_corpus
    from worldmodel.text import stream_of

    found = read_corpus(**text)
    if found.sha256() != sha256:
        raise ValueError(f"the corpus {found.name} has changed since its checksum was taken")
    texts = found.texts("test")
    return stream_of(tokenizer, texts), {
        "corpus": found.name,
        "documents": len(texts),
        "sha256": sha256,
        "python": platform.python_version(),
    }


def cut(stream: Tokens, length: int, n_tokens: int) -> Tensor:
    """Return the first windows of a stream, int64 [N, length + 1].

    Raises:
        ValueError: It is shorter than ``n_tokens``.
    """
    from worldmodel.text import TextWindows

    windows = TextWindows(stream, length, max(0, len(stream) - 1) // length, None)
    return first(windows, length, n_tokens // length)


def text_of(settings: LanguageModels) -> dict[str, Any]:
    """Return where the text is, without what is left at its default: addresses outlive fields."""
    path = settings.path if settings.shards is None else settings.shards
    more = {"corpus": settings.corpus, "column": settings.column}
    return {"path": path, **{name: value for name, value in more.items() if value is not None}}


@functools.cache
def text_sha256(
    path: str | None = None, corpus: str | None = None, column: str | None = None
) -> str:
    """Return the checksum of a corpus, see :func:`worldmodel.corpus.read_corpus`."""
    from worldmodel.corpus import read_corpus

    return read_corpus(path, corpus, column).sha256()


@functools.cache
def _shards_sha256(path: str, tokenizer: str) -> str:
    from worldmodel.shard_data import ShardData

    return ShardData(path, tokenizer).corpus_record["sha256"]
