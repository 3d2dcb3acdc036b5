"""Evaluation of a language model beyond the length of its training."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from attention.layer import Attention
from worldmodel.models.text import TokenModel

_MOST_NUMBERS = 2**26
"""Attention weights of one layer, or logits, that a batch may hold at once."""


@contextlib.contextmanager
def at_length(module: nn.Module, length: int, ntk_train_length: int | None) -> Iterator[None]:
    """Set attention layers to a length other than that of training.

    A formula that contains the sequence length L takes this one for it, as it is written.

    Args:
        module: The model.
        length: Tokens of a window.
        ntk_train_length: With a number, rotary positions are stretched by dynamic NTK beyond this
            length; None turns that off.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, Attention)]
    before = [(layer.spec, layer.ntk_train_length) for layer in layers]
    try:
        for layer in layers:
            if layer.spec.needs_length:
                layer.spec = layer.spec.with_arguments(length=length)
            layer.ntk_train_length = ntk_train_length
        yield
    finally:
        for layer, (spec, ntk) in zip(layers, before, strict=True):
            layer.spec, layer.ntk_train_length = spec, ntk


@torch.no_grad()
def losses(model: TokenModel, windows: Tensor) -> Tensor:
    """Return the negative log-likelihood of every token of windows after the first, in nats.

    Args:
        model: A language model, in evaluation mode.
        windows: int64 [N, L + 1].

    Returns:
        float32 [N, L].
    """
    n, length = len(windows), windows.shape[1] - 1
    numbers = length * max(model.hparams["n_head"] * length, model.embedding.num_embeddings)
    size = max(1, min(n, _MOST_NUMBERS // numbers))
    parts = []
    for batch in windows.split(size):
        tokens = batch.to(model.device)
        logits = model({"tokens": tokens[:, :-1]})
        loss = functional.cross_entropy(
            logits.transpose(1, 2).float(), tokens[:, 1:], reduction="none"
        )
        parts.append(loss.cpu())
    return torch.cat(parts)
