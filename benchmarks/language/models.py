"""Language models of an evaluation: trained in the run, or given as checkpoints.

Both are Lightning checkpoints that say what they were trained on, so both are evaluated alike.
The cell of a training has the same address in every study, so ``--reuse`` finds it in the results
of another one.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from benchmarks import learners, training
from benchmarks.language import texts
from benchmarks.language.base import LanguageModels
from benchmarks.language.checkpoints import TextCheckpoint
from benchmarks.study import MEASUREMENT
from benchmarks.training_options import Job
from benchmarks.variants import Variant
from orbits.runs import artefact
from orbits.runs.cell import Cell, Function, Outcome, Progress
from orbits.runs.result import Case
from orbits.runs.study import Study
from worldmodel.models.checkpoint import named_checkpoint
from worldmodel.text.tokenizers import load_tokenizer

STUDY, VERSION = "language model", 3
"""The study of a training, whichever study asks for it, and the version of :func:`train`."""
TEXT_SEED = 0
"""Seed of the held-out text; a model's seed draws its own training windows."""


@dataclass(frozen=True)
class EvaluatedModel:
    """A language model with its training cell or its checkpoint.

    Attributes:
        label: Name in tables.
        seed: Number among the models of this name; None if that is not known.
        attention: Variant or mixer.
        tokenizer: Tokeniser, see :func:`worldmodel.text.tokenizers.load_tokenizer`.
        context: Tokens of a training window.
        n_positions: Most tokens it can read, of learned positions or of a mixer that is built for
            so many; None for any number.
        stretches: Whether dynamic NTK changes it.
        training: The training cell, if there is one.
        checkpoint: The checkpoint, if there is one.
    """

    label: str
    seed: int | None
    attention: str
    tokenizer: str
    context: int
    n_positions: int | None
    stretches: bool
    training: Cell | None = None
    checkpoint: Path | None = None

    def check_length(self, length: int) -> None:
        """Refuse more tokens than the model can read."""
        if self.n_positions is not None and length > self.n_positions:
            raise ValueError(
                f"{self.label} reads at most {self.n_positions} tokens, fewer than {length}"
            )

    def evaluation(
        self,
        study: Study,
        function: Function,
        setting: Mapping[str, Any],
        arguments: Mapping[str, Any],
        inputs: Mapping[str, Path] | None = None,
    ) -> Cell:
        """Return the cell of an evaluation of this model.

        Args:
            study: Name of the study that evaluates.
            function: Function that evaluates; its parameter ``model`` is a checkpoint, or the
                folder of the cell that trained it.
            setting: Entries that tell rows apart, beside model and seed.
            arguments: Further arguments of the function.
            inputs: Files that it reads.
        """
        return Cell(
            function,
            Case(study.name, MEASUREMENT, self.label, seed=self.seed, setting=setting),
            arguments,
            needs={"model": self.training} if self.training else {},
            inputs={**({"model": self.checkpoint} if self.checkpoint else {}), **(inputs or {})},
        )


def models_of(settings: LanguageModels) -> list[EvaluatedModel]:
    """Return the models of a run."""
    if not settings.checkpoints:
        return [to_train(settings, variant, seed) for variant, seed in settings.trained()]
    models = [_given(each) for each in settings.checkpoints]
    if twice := [key for key, n in Counter((x.label, x.seed) for x in models).items() if n > 1]:
        label, seed = twice[0]
        which = "" if seed is None else f", seed {seed}"
        raise ValueError(f"duplicate {label}{which} in checkpoints; give LABEL:SEED=PATH")
    return models


def to_train(
    settings: LanguageModels, variant: Variant, seed: int, mask_at: int | None = None
) -> EvaluatedModel:
    """Return a model that the run trains; arguments as for :func:`training_cell`."""
    return EvaluatedModel(
        label=variant.label,
        seed=seed,
        attention=variant.attention,
        tokenizer=settings.tokenizer,
        context=settings.seq_len,
        n_positions=variant.arguments(settings.seq_len).get("max_length"),
        stretches=variant.stretches,
        training=training_cell(settings, variant, seed, mask_at),
    )


def training_cells(models: Iterable[EvaluatedModel]) -> list[Cell]:
    """Return the training cells of models."""
    return [model.training for model in models if model.training]


def training_cell(
    settings: LanguageModels, variant: Variant, seed: int, mask_at: int | None = None
) -> Cell:
    """Return the cell that trains one model.

    Args:
        settings: Size, text and schedule.
        variant: The attention.
        seed: The model's seed.
        mask_at: Place of a fixed token in every window, see
            :class:`benchmarks.language.masked_text.MaskedTextData`; None for none.
    """
    path = settings.path if settings.shards is None else settings.shards
    place = {"path": path, "corpus": settings.corpus, "column": settings.column}
    # Without what is left at its default: addresses outlive fields.
    text = {name: value for name, value in place.items() if value is not None or name == "path"}
    learner = "text" if settings.shards is None else "shards"
    job: Job = {
        "learner": learner if mask_at is None else "masked_text",
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
            **text,
            "tokenizer": settings.tokenizer,
            "seq_len": settings.seq_len,
            "batch_size": settings.batch_size,
            "seed": TEXT_SEED,
            "train_seed": seed,
            **({} if mask_at is None else {"mask_at": mask_at}),
        },
        "seed": seed,
        "lr": settings.lr,
        "steps": settings.steps,
    }
    if variant.sharpen_after:
        job["sharpen_after"] = variant.sharpen_after
    if changes := settings.training.changes():
        job["training"] = changes
    learners.check(job)
    if settings.shards is None:
        sha256 = texts.text_sha256(**text)
    else:
        sha256 = texts.shards_sha256(settings.shards, settings.tokenizer)
    arguments: dict[str, Any] = {"job": job, "corpus_sha256": sha256}
    if settings.tokenizer.endswith(".json"):
        arguments["tokenizer_sha256"] = artefact.sha256(settings.tokenizer)
    setting = {} if mask_at is None else {"mask_at": mask_at}
    case = Case(STUDY, "training", variant.label, seed=seed, setting=setting)
    return Cell(train, case, arguments, version=VERSION)


@texts.skipping()
def train(
    job: Job,
    corpus_sha256: str,
    folder: Path,
    scratch: Path,
    progress: Progress,
    tokenizer_sha256: str | None = None,
) -> Outcome:
    """Train a language model; keep its checkpoint and curves.

    Args:
        job: Job of the training.
        corpus_sha256: The checksum of its text when the run began.
        folder: Folder for the checkpoint and the curves.
        scratch: Folder in which a killed training left off.
        progress: Told how far training is.
        tokenizer_sha256: The checksum of a tokeniser that is a file; part of the address alone.
    """
    data = texts.corpus_data(job["learner"], job["data"], corpus_sha256)
    training.train(job, folder, scratch, progress)
    return Outcome(
        metrics={"val_loss": training.last_value(folder / training.CURVES, "val_loss")},
        device=training.device(job),
        manifest={"corpus": data.corpus_record},
    )


def check_text(
    models: Iterable[EvaluatedModel],
    multiple: int,
    n_tokens: int,
    text: Mapping[str, Any] | None = None,
) -> None:
    """Refuse a missing or too short held-out text before anything is trained.

    Args:
        models: The models; those that the run trains have one text.
        multiple: The longest window, in training lengths.
        n_tokens: Tokens to predict in all.
        text: Another text than the models' own, with its checksum.
    """
    windows: dict[Any, Callable[[], Tensor]] = {}
    for model in models:
        length = multiple * model.context
        if text:
            of_text = functools.partial(_windows, model.tokenizer, text, length, n_tokens)
            windows[model.tokenizer, length] = of_text
        elif model.training:
            job, sha256 = (model.training.arguments[name] for name in ("job", "corpus_sha256"))
            windows["trained", length] = functools.partial(
                texts.held_out, job["learner"], job["data"], sha256, length, n_tokens
            )
        else:
            assert model.checkpoint is not None
            checkpoint = TextCheckpoint.read(model.checkpoint)
            same = (str(sorted(checkpoint.data.items())), length)
            windows[same] = functools.partial(checkpoint.held_out, length, n_tokens)
    for read in windows.values():  # each different text once
        read()


def _windows(tokenizer: str, text: Mapping[str, Any], length: int, n_tokens: int) -> Tensor:
    """Return windows of another text than a model's own, [N, length + 1]."""
    stream, _ = texts.stream_of_test(load_tokenizer(tokenizer), **text)
    return texts.cut(stream, length, n_tokens)


def _given(given: str) -> EvaluatedModel:
    """Return the model of a checkpoint, ``PATH`` or ``LABEL:SEED=PATH``."""
    label, seed, path = named_checkpoint(given)
    checkpoint = TextCheckpoint.read(path)
    if checkpoint.learner == "masked_text":
        raise ValueError(f"{path}: was trained on a text with a fixed token, which is not natural")
    known = checkpoint.hyper_parameters
    return EvaluatedModel(
        label=label or str(path),
        seed=seed,
        attention=known["attention"],
        tokenizer=known["tokenizer"],
        context=checkpoint.context,
        n_positions=known["n_positions"] or (known.get("attention_args") or {}).get("max_length"),
        stretches=Variant(known["attention"]).stretches and checkpoint.rotates,
        checkpoint=path,
    )
