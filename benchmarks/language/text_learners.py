"""The learners of text: a language model on windows of a corpus or of token shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.learners import Learner
from worldmodel.data.shards import ShardData
from worldmodel.data.text import TextData
from worldmodel.models.base import GPTModel
from worldmodel.models.text import TextModel


def text_model(data: Mapping[str, Any], **model: Any) -> GPTModel:
    """Return a language model with the tokeniser of its data."""
    return TextModel(data["tokenizer"], **model)


TEXT = Learner(text_model, TextData)
SHARDS = Learner(text_model, ShardData)
