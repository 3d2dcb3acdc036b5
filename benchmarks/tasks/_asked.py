"""Language models that are asked: those that a run trains, or checkpoints that the user has.

Both are Lightning checkpoints that say what they were trained on, so both are asked alike.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.task import Measured, Task
from benchmarks.tasks import _language_model as language_model
from benchmarks.tasks._language_model import LanguageModels
from orbits import artefacts
from symreg.cells import Cell
from worldmodel.named_checkpoint import named_checkpoint
from worldmodel.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.variants import Variant
    from worldmodel.text_task import TextTask

TEXTS = {"TextData": "text", "MaskedTextData": "masked_text", "ShardData": "shards"}
"""The learner of each data module of text."""


@dataclass(frozen=True)
class Asked:
    """A language model and where it comes from.

    Attributes:
        label: Its name in tables.
        seed: Which of the models of this name it is; None if that is not known.
        attention: Its variant or mixer.
        tokenizer: As for :func:`worldmodel.tokenizer.load_tokenizer`.
        context: Tokens of a training window.
        n_positions: Most tokens it can read; None without learned positions.
        stretches: Whether dynamic NTK changes it.
        config: What says which model it is, beside the address of a training cell.
        needs: The training cell, if there is one.
        inputs: The checkpoint, if there is one.
    """

    label: str
    seed: int | None
    attention: str
    tokenizer: str
    context: int
    n_positions: int | None
    stretches: bool
    config: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, Cell] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)

    def check_length(self, length: int) -> None:
        """Refuse to ask about more tokens than it can read.

        Raises:
            ValueError: It has learned positions, fewer than these.
        """
        if self.n_positions is not None and length > self.n_positions:
            raise ValueError(
                f"{self.label} has {self.n_positions} learned positions, {length} tokens are asked"
            )

    def question(
        self,
        task: Task,
        kind: str,
        row: Mapping[str, Any],
        how: Mapping[str, Any],
        label: str,
        inputs: Mapping[str, Path] | None = None,
    ) -> Cell:
        """Return the cell of a question to this model.

        Args:
            task: Whose question it is.
            kind: Which function of the task asks.
            row: What identifies the row of a table, beside model and seed.
            how: What else determines the answer.
            label: What a progress bar shows.
            inputs: Files that the question reads.
        """
        config = task.measurement({"model": self.label, **row}, self.seed, {**self.config, **how})
        files = {**self.inputs, **(inputs or {})}
        return Cell(kind, config, needs=self.needs, inputs=files, label=label)


def models_of(settings: LanguageModels) -> list[Asked]:
    """Return the models of a run.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        ValueError: A checkpoint holds no language model, or two have one name and seed.
    """
    if settings.checkpoints:
        found = [_checkpoint(each) for each in settings.checkpoints]
        if twice := [key for key, n in Counter((x.label, x.seed) for x in found).items() if n > 1]:
            label, seed = twice[0]
            which = "" if seed is None else f", seed {seed}"
            raise ValueError(f"duplicate {label}{which} in checkpoints; give LABEL:SEED=PATH")
        return found
    return [to_train(settings, variant, seed) for variant, seed in settings.models()]


def to_train(
    settings: LanguageModels, variant: Variant, seed: int, mask_at: int | None = None
) -> Asked:
    """Return a model that the run trains; arguments as for ``training_cell``."""
    return Asked(
        label=variant.label,
        seed=seed,
        attention=variant.attention,
        tokenizer=settings.tokenizer,
        context=settings.seq_len,
        n_positions=None,
        stretches=variant.stretches,
        needs={"model": language_model.training_cell(settings, variant, seed, mask_at)},
    )


def training_cells(asked: list[Asked]) -> list[Cell]:
    """Return the training cells of some models, which come first in a run."""
    return [cell for model in asked for cell in model.needs.values()]


def check_text(
    models: list[Asked], multiple: int, n_tokens: int, text: Mapping[str, Any] | None = None
) -> None:
    """Refuse a held-out text that is too short, or not there, before anything is trained.

    Args:
        models: The models; those that the run trains have one text.
        multiple: The longest window, in training lengths.
        n_tokens: Tokens to predict in all.
        text: Another text than the models' own, as :func:`language_model.stream` takes it.

    Raises:
        FileNotFoundError: A text is no longer where it was.
        ValueError: It is shorter, or another one now.
    """
    windows: dict[Any, Callable[[], Tensor]] = {}
    for model in models:
        length = multiple * model.context
        if text:
            of_text = functools.partial(_windows, model.tokenizer, text, length, n_tokens)
            windows[model.tokenizer, length] = of_text
        elif model.needs:
            config = model.needs["model"].config
            windows["trained", length] = functools.partial(
                language_model.held_out, config, length, n_tokens
            )
        else:
            found = Model.of(model.inputs["checkpoint"])
            same = (str(sorted(found.data.items())), length)
            windows[same] = functools.partial(found.held_out, length, n_tokens)
    for read in windows.values():  # each different text once
        read()


def _windows(tokenizer: str, text: Mapping[str, Any], length: int, n_tokens: int) -> Tensor:
    """Return windows of a text that is only asked, [N, length + 1]."""
    stream, _ = language_model.stream(load_tokenizer(tokenizer), **text)
    return language_model.cut(stream, length, n_tokens)


def _checkpoint(given: str) -> Asked:
    from benchmarks.variants import Variant

    label, seed, path = named_checkpoint(given)
    model = Model.of(path)
    if model.learner == "masked_text":
        raise ValueError(f"{path}: was trained on a text with a fixed token, which is not natural")
    known = model.hyper_parameters
    return Asked(
        label=label or str(path),
        seed=seed,
        attention=known["attention"],
        tokenizer=known["tokenizer"],
        context=model.context,
        n_positions=known["n_positions"],
        stretches=Variant(known["attention"]).stretches and _rotates(known),
        config={"checkpoint_sha256": artefacts.sha256(path)},
        inputs={"checkpoint": path},
    )


def _rotates(hyper_parameters: Mapping[str, Any]) -> bool:
    """Return whether a model has rotary positions, which attention has unless it is told."""
    return (hyper_parameters["attention_args"] or {}).get("rope_base", 0) is not None


@dataclass(frozen=True)
class Model:
    """A checkpoint of a language model, and the text it was trained on.

    Attributes:
        path: The checkpoint.
        hyper_parameters: Of the model.
        data: Of its text, without what Lightning's command line adds.
        learner: Which text it is, see ``TEXTS``; None if the checkpoint does not say.
        corpus: What it was trained on, as ``corpus_record`` of its data module, if it says so.
    """

    path: Path
    hyper_parameters: Mapping[str, Any]
    data: Mapping[str, Any]
    learner: str | None = None
    corpus: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, path: Path) -> Model:
        """Read a checkpoint.

        Raises:
            ValueError: It holds no language model, or does not say how long its windows were.
        """
        from worldmodel.checkpoint import read_checkpoint

        saved = read_checkpoint(path)
        if "tokenizer" not in saved["hyper_parameters"]:
            raise ValueError(f"{path}: holds no language model (TextTask)")
        data = {
            name: value
            for name, value in saved.get("datamodule_hyper_parameters", {}).items()
            if not name.startswith("_")
        }
        if not isinstance(data.get("seq_len"), int):
            raise ValueError(f"{path}: does not say how long its training windows were")
        module = next((name for name in TEXTS if name in saved), None)
        said = saved[module] if module else {"corpus_record": None}
        if not (isinstance(said, Mapping) and "corpus_record" in said):
            raise ValueError(f"{path}: {module} does not say what text it is")
        return cls(
            path,
            {"attention_args": None, "n_positions": None, **saved["hyper_parameters"]},
            data,
            TEXTS[module] if module else None,
            saved[module]["corpus_record"] if module else None,
        )

    @classmethod
    def needed(cls, needs: Mapping[str, Path], config: Mapping[str, Any]) -> Model:
        """Return the model that a question needs: of a training cell's folder, or a checkpoint.

        Raises:
            ValueError: The checkpoint is another one than when the run began.
        """
        from benchmarks.training import CHECKPOINT

        if "checkpoint" not in needs:
            return cls.of(needs["model"] / CHECKPOINT)
        path = needs["checkpoint"]
        if artefacts.sha256(path) != config["checkpoint_sha256"]:
            raise ValueError(f"{path} has changed since this run began; run it again")
        return cls.of(path)

    @property
    def context(self) -> int:
        """Tokens of a training window."""
        return self.data["seq_len"]

    def load(self) -> TextTask:
        """Return the model on the device that is there, ready to ask."""
        import torch

        from worldmodel.tasks import load_task
        from worldmodel.text_task import TextTask

        task = load_task(self.path)
        assert isinstance(task, TextTask)
        return task.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def held_out(self, length: int, n_tokens: int) -> Tensor:
        """Return windows of the held-out part of its own text, int64 [N, length + 1].

        Raises:
            FileNotFoundError: The text is no longer where it was.
            ValueError: The checkpoint does not say which it was, or as for
                :func:`benchmarks.tasks._language_model.held_out`.
        """
        if self.learner is None or self.corpus is None:
            raise ValueError(f"{self.path}: does not say what text it was trained on")
        fixed: dict[str, Any] = {
            "tokenizer": self.hyper_parameters["tokenizer"],
            "num_workers": 0,
            **({"verify": False} if "verify" in self.data else {}),
        }
        config = {
            "learner": self.learner,
            "data": {**self.data, **fixed},
            "corpus_sha256": self.corpus["sha256"],
        }
        try:
            return language_model.held_out(config, length, n_tokens)
        except (FileNotFoundError, ValueError) as error:
            raise type(error)(f"the own text of {self.path}: {error}") from None

    def line(
        self,
        task: Task,
        config: Mapping[str, Any],
        metrics: Mapping[str, Measured],
        asked: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the result line of a question to this model.

        Args:
            task: Whose question it was.
            config: The question's configuration.
            metrics: The answer.
            asked: The text that was asked, where it is not the one that it was trained on.
        """
        from benchmarks.training import device
        from orbits.manifest import manifest

        about = manifest(
            config,
            seed=config["seed"],
            device=device(config),
            inputs={"model": artefacts.sha256(self.path)},
        )
        corpora = {"corpus": self.corpus, "asked_corpus": asked}
        about |= {name: dict(value) for name, value in corpora.items() if value is not None}
        return task.line(config, metrics, manifest=about)
