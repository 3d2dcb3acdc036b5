"""Settings and reports that studies of language models share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.study import MEASUREMENT, PaperStudy
from benchmarks.training_options import Training
from orbits.runs.deferred import deferred
from orbits.runs.page import Report
from orbits.runs.result import Quantity, Result
from orbits.runs.settings import check_at_least, check_not_empty
from worldmodel.models.checkpoint import named_checkpoint
from worldmodel.text import corpora
from worldmodel.text.corpus import STANDARD_LIBRARY

if TYPE_CHECKING:
    from benchmarks.variants import Variant

variants = deferred("benchmarks.variants:variants")
text_sha256 = deferred("benchmarks.language.texts:text_sha256")
TRAINING_METRICS = {
    "val_loss": Quantity("lower", "nats per token", "loss on validation windows after training")
}


@dataclass(frozen=True)
class LanguageModels:
    """Settings of language models: trained in the run, or given as checkpoints.

    Attributes:
        attention: Attention variants, linear mixers and the papers' ablations of both.
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
        path: The text, as for :class:`worldmodel.data.text.TextData`; None for the standard
            library of the running Python.
        corpus: A published corpus, from the hub or from a copy of its files at ``path``.
        column: The column of Parquet or JSON lines that holds the text; None for ``text``.
        shards: A folder of token files in the text's stead, see
            :class:`worldmodel.data.shards.ShardData`.
        tokenizer: ``bytes``, ``gpt2`` or the path of a ``tokenizer.json``.
        checkpoints: Checkpoints of language models to evaluate in place of trained ones, each a
            path or ``LABEL:SEED=PATH``, with the name of its row and its seed.
        training: Device, precision and other options of training.
    """

    attention: tuple[str, ...] = ("softmax", "lssar")
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
        check_not_empty(self, "attention", "seeds")
        sizes = ("n_layer", "n_head", "head_dim", "seq_len", "batch_size", "steps")
        check_at_least(self, {**dict.fromkeys(sizes, 1), "seeds": 0, "exponents": 1e-9})
        check_at_least(self, {"lr": 1e-9, "weight_decay": 0})
        if not 0 <= self.sharpen_after < self.steps:
            raise ValueError(
                f"sharpen_after must be in [0, {self.steps}), got {self.sharpen_after}"
            )
        for name in ("path", "corpus", "column"):
            given = getattr(self, name)
            if given is not None and self.shards is not None:
                raise ValueError(f"give {name} {given!r} or shards {self.shards!r}, not both")
        if self.corpus is not None:
            corpora.get(self.corpus)  # refuses an unknown one

    def trained(self) -> Iterator[tuple[Variant, int]]:
        """Yield every variant with every seed."""
        for seed in self.seeds:
            for variant in variants(self.attention, self.exponents, self.sharpen_after):
                yield variant, seed


@dataclass(frozen=True)
class EvaluatedText(LanguageModels):
    """Settings of language models and of the text that evaluates them.

    Attributes:
        eval_path: The text to evaluate on, like ``path``; None for the held-out part of the
            models' own text.
        eval_corpus: The corpus of that text, like ``corpus``.
        eval_column: The column of that text, like ``column``.
    """

    eval_path: str | None = None
    eval_corpus: str | None = None
    eval_column: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eval_corpus is not None:
            corpora.get(self.eval_corpus)  # refuses an unknown one

    def eval_text(self) -> dict[str, str] | None:
        """Return the text of the evaluation with its checksum; None for the models' own text."""
        given = {"path": self.eval_path, "corpus": self.eval_corpus, "column": self.eval_column}
        text = {name: value for name, value in given.items() if value is not None}
        if not text:
            return None
        return {**text, "sha256": text_sha256(**text)}


class LanguageStudy(PaperStudy):
    """The base of studies of language models, trained or given as checkpoints.

    Attributes:
        training_only: Settings that checkpoints leave without a use.
    """

    training_only: ClassVar[frozenset[str]] = frozenset(
        each.name for each in dataclasses.fields(LanguageModels) if each.name != "checkpoints"
    )

    def check_changes(self, settings: Any, changes: Mapping[str, Any]) -> None:
        """Refuse training flags beside checkpoints, missing ones, and exponents of no variant."""
        for name in changes:
            if settings.checkpoints and name.partition(".")[0] in self.training_only:
                flag = name.replace("_", "-")
                raise ValueError(
                    f"with --checkpoints nothing is trained, so --{flag} changes nothing: leave it"
                )
        for given in settings.checkpoints:
            named_checkpoint(given)  # refuses a missing file, before torch is imported
        super().check_changes(settings, changes)

    def check(self, settings: Any) -> None:
        """Refuse missing devices."""
        if not settings.checkpoints:
            super().check(settings)

    def setting(self, config: Mapping[str, Any]) -> str:
        """Return a run's preset, its changes and its checkpoints in a sentence."""
        if not config.get("checkpoints"):
            return super().setting(config)
        words = super().setting({**config, "checkpoints": []})
        return f"{words[:-1]}, on checkpoints {', '.join(config['checkpoints'])}."

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return the report of a run with the texts of training and evaluation."""
        report = super().report(results, config, out)
        sentences = [*report.sentences, *texts_in_words(measured(results))]
        return dataclasses.replace(report, sentences=sentences)


def measured(results: Sequence[Result], **setting: Any) -> list[Result]:
    """Return successful measurements whose case matches a setting."""
    return [
        result
        for result in results
        if result.ok
        and result.case.kind == MEASUREMENT
        and all(result.case.get(name) == value for name, value in setting.items())
    ]


def texts_in_words(results: Sequence[Result]) -> list[str]:
    """Return sentences that name the texts of training and evaluation."""
    sentences = set()
    for result in results:
        for key, what in (("corpus", "Trained on"), ("asked_corpus", "Scored on")):
            if known := result.manifest.get(key):
                # The standard library's version is Python's.
                own = known["corpus"] == STANDARD_LIBRARY
                python = f"Python {known['python']}, " if own else ""
                sentences.add(f"{what} {known['corpus']} ({python}sha256 {known['sha256'][:16]}).")
    return sorted(sentences)
