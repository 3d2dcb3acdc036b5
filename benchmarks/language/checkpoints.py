"""Checkpoints of language models with the text of their training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.language import texts
from benchmarks.training import CHECKPOINT
from orbits.runs.cell import Outcome
from orbits.runs.result import Metric
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.load import load_model
from worldmodel.models.text import TextModel

LEARNERS = {"TextData": "text", "MaskedTextData": "masked_text", "ShardData": "shards"}
"""The learner of each data module of text."""


@dataclass(frozen=True)
class TextCheckpoint:
    """A checkpoint of a language model and the text of its training.

    Attributes:
        path: The checkpoint.
        hyper_parameters: Hyper-parameters of the model.
        data: Hyper-parameters of its text, without what Lightning's command line adds.
        learner: Learner of its text, see ``LEARNERS``; None if the checkpoint does not say.
        corpus: Text of the training, as ``corpus_record`` of its data module, if it says so.
    """

    path: Path
    hyper_parameters: Mapping[str, Any]
    data: Mapping[str, Any]
    learner: str | None = None
    corpus: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, path: Path) -> TextCheckpoint:
        """Read a checkpoint."""
        path = path / CHECKPOINT if path.is_dir() else path
        saved = read_checkpoint(path)
        if "tokenizer" not in saved["hyper_parameters"]:
            raise ValueError(f"{path}: holds no language model (TextModel)")
        data = {
            name: value
            for name, value in saved.get("datamodule_hyper_parameters", {}).items()
            if not name.startswith("_")
        }
        if not isinstance(data.get("seq_len"), int):
            raise ValueError(f"{path}: does not say how long its training windows were")
        module = next((name for name in LEARNERS if name in saved), None)
        said = saved[module] if module else {"corpus_record": None}
        if not (isinstance(said, Mapping) and "corpus_record" in said):
            raise ValueError(f"{path}: {module} does not say what text it is")
        return cls(
            path,
            {"attention_args": None, "n_positions": None, **saved["hyper_parameters"]},
            data,
            LEARNERS[module] if module else None,
            said["corpus_record"],
        )

    @property
    def context(self) -> int:
        """Tokens of a training window."""
        return self.data["seq_len"]

    @property
    def rotates(self) -> bool:
        """Whether the model has rotary positions, the default of attention."""
        return (self.hyper_parameters["attention_args"] or {}).get("rope_base", 0) is not None

    def load(self) -> TextModel:
        """Return the model in evaluation mode, on a GPU if there is one."""
        model = load_model(self.path)
        assert isinstance(model, TextModel)
        return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def held_out(self, length: int, n_tokens: int) -> Tensor:
        """Return windows of the held-out part of its own text, int64 [N, length + 1]."""
        if self.learner is None or self.corpus is None:
            raise ValueError(f"{self.path}: does not say what text it was trained on")
        fixed = {"tokenizer": self.hyper_parameters["tokenizer"], "num_workers": 0}
        if "verify" in self.data:
            fixed["verify"] = False
        data = {**self.data, **fixed}
        try:
            return texts.held_out(self.learner, data, self.corpus["sha256"], length, n_tokens)
        except (FileNotFoundError, ValueError) as error:
            raise type(error)(f"the own text of {self.path}: {error}") from None

    def outcome(
        self,
        metrics: Mapping[str, Metric],
        scored: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Outcome:
        """Return the outcome of an evaluation of this model."""
        corpora = {"corpus": self.corpus, "asked_corpus": scored}
        on_gpu = torch.cuda.is_available()
        return Outcome(
            metrics=metrics,
            device=torch.cuda.get_device_name() if on_gpu else "cpu",
            manifest={name: dict(text) for name, text in corpora.items() if text is not None},
            **more,
        )
