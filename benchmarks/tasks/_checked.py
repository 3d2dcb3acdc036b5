"""Refusing a model before any cell is computed."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any


def check_model(config: Mapping[str, Any], warmup_steps: int) -> None:
    """Refuse a cell whose model cannot be built.

    Args:
        config: The cell's configuration.
        warmup_steps: As for :func:`benchmarks.learners.build`.

    Raises:
        ValueError: Its model, optimiser or problem refuses a setting.
        TypeError: An argument that the attention does not take.
    """
    model = {k: v for k, v in config["model"].items() if k != "weight_decay"}
    _check(
        config["learner"],
        json.dumps({**model, "weight_decay": 0.0}),
        config["data"].get("tokenizer", ""),
    )


@functools.cache
def _check(learner: str, model: str, tokenizer: str) -> None:
    """Build each different model once, without its weights."""
    import torch

    from worldmodel import optim
    from worldmodel.token_task import TokenTask
    from worldmodel.tokenizer import load_tokenizer

    with torch.device("meta"):
        task = TokenTask(
            load_tokenizer(tokenizer).vocab_size if tokenizer else 2, **json.loads(model)
        )
    optim.configure(
        task, task.hparams["optimizer"], lr=1e-3, weight_decay=0, warmup_steps=1, total_steps=2
    )
