"""Language models that are asked: those that a run trains, or checkpoints that the user has.

Both are Lightning checkpoints that say what they were trained on, so both are asked alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.task import Measured, Task
from benchmarks.tasks import _language_model as language_model
from benchmarks.tasks._language_model import LanguageModels
from orbits import artefacts
from symreg.cells import Cell

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.variants import Variant
    from worldmodel.text_task import TextTask

TEXTS = {"TextData": "text", "MaskedTextData": "masked_text", "ShardData": "shards"}
"""The learner of each data module of text."""

LABELLED = re.compile(r"(?P<label>[^=]+):(?P<seed>\d+)=(?P<path>.+)")


@dataclass(frozen=True)
class Asked:
    """A language model and where it comes from.

    Attributes:
        label: Its name in tables.
        seed: Which of the models of this name it is; None if that is not known.
        attention: Its variant or mixer.
        tokenizer: As for :func:`worldmodel.tokenizer.load_tokenizer`.
        context: Tokens of a training window.
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
    stretches: bool
    config: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, Cell] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)

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


def models(settings: LanguageModels) -> list[Asked]:
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
        stretches=variant.stretches,
        needs={"model": language_model.training_cell(settings, variant, seed, mask_at)},
    )


def trainings(asked: list[Asked]) -> list[Cell]:
    """Return the training cells of some models, which come first in a run."""
    return [cell for model in asked for cell in model.needs.values()]


def check_text(asked: list[Asked], multiple: int, n_tokens: int) -> None:
    """Refuse models whose own held-out text is too short, or is not there.

    Args:
        asked: The models; those that the run trains have one text.
        multiple: The longest window, in training lengths.
        n_tokens: Tokens to predict in all.

    Raises:
        FileNotFoundError: A text is no longer where it was.
        ValueError: It is shorter, or another one now.
    """
    trained = [model for model in asked if model.needs]
    for model in trained[:1]:
        config = model.needs["model"].config
        language_model.held_out(config, multiple * model.context, n_tokens)
    for model in asked:
        if "checkpoint" in model.inputs:
            found = Model.of(model.inputs["checkpoint"])
            found.held_out(multiple * found.context, n_tokens)


def _checkpoint(given: str) -> Asked:
    from benchmarks.variants import Variant

    match = LABELLED.fullmatch(given)
    path = match["path"] if match else given
    model = Model.of(Path(path))
    known = model.saved["hyper_parameters"]
    rotary = (known["attention_args"] or {}).get("rope_base", 0) is not None
    return Asked(
        label=match["label"] if match else path,
        seed=int(match["seed"]) if match else None,
        attention=known["attention"],
        tokenizer=known["tokenizer"],
        context=model.context,
        stretches=rotary and Variant(known["attention"]).stretches,
        config={"checkpoint_sha256": artefacts.sha256(path)},
        inputs={"checkpoint": Path(path)},
    )


@dataclass(frozen=True)
class Model:
    """A checkpoint of a language model, and the text it was trained on.

    Attributes:
        path: The checkpoint.
        saved: Its content.
    """

    path: Path
    saved: Mapping[str, Any]

    @classmethod
    def of(cls, path: Path) -> Model:
        """Read a checkpoint.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It holds no language model, or does not say how long its windows were.
        """
        from worldmodel.tasks import read_checkpoint

        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        saved = read_checkpoint(path)
        if "tokenizer" not in saved["hyper_parameters"]:
            raise ValueError(f"{path}: holds no language model (TextTask)")
        if "seq_len" not in saved.get("datamodule_hyper_parameters", {}):
            raise ValueError(f"{path}: does not say how long its training windows were")
        return cls(path, saved)

    @classmethod
    def needed(cls, needs: Mapping[str, Path]) -> Model:
        """Return the model that a cell needs: of a training cell's folder, or a checkpoint."""
        from benchmarks.training import CHECKPOINT

        if "checkpoint" in needs:
            return cls.of(needs["checkpoint"])
        return cls.of(needs["model"] / CHECKPOINT)

    @property
    def context(self) -> int:
        """Tokens of a training window."""
        return self.saved["datamodule_hyper_parameters"]["seq_len"]

    @property
    def corpus(self) -> dict[str, Any] | None:
        """What it was trained on, as ``corpus_record`` of its data module, if it says so."""
        return self.saved[self._data]["corpus_record"] if self._data else None

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
        if self._data is None or self.corpus is None:
            raise ValueError(f"{self.path}: does not say what text it was trained on")
        config = {
            "learner": TEXTS[self._data],
            "data": {
                **self.saved["datamodule_hyper_parameters"],
                "tokenizer": self.saved["hyper_parameters"]["tokenizer"],
                "num_workers": 0,
            },
            "corpus_sha256": self.corpus["sha256"],
        }
        return language_model.held_out(config, length, n_tokens)

    def line(
        self,
        task: Task,
        config: Mapping[str, Any],
        metrics: Mapping[str, Measured],
        **manifest: Any,
    ) -> dict[str, Any]:
        """Return the result line of a question to this model.

        Args:
            task: Whose question it was.
            config: The question's configuration.
            metrics: The answer.
            **manifest: What its manifest says beside the usual and the text it was trained on.
        """
        from benchmarks.training import device
        from orbits.manifest import manifest as describe

        about = describe(
            config,
            seed=config["seed"],
            device=device(config),
            inputs={"model": artefacts.sha256(self.path)},
        )
        return task.line(config, metrics, manifest={**about, "corpus": self.corpus, **manifest})

    @property
    def _data(self) -> str | None:
        return next((name for name in TEXTS if name in self.saved), None)
