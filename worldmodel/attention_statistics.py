"""What every layer of a model does with its attention, and the sizes of what it attends to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attention.layer import with_weights
from worldmodel.gpt import Block
from worldmodel.token_task import TokenTask


@dataclass(frozen=True)
class LayerState:
    """One block's attention on a batch of B sequences of L tokens.

    Attributes:
        weights: [B, H, L, L].
        query: Before the rotation, which changes no norm, [B, H, L, D].
        key: Likewise, [B, H_kv, L, D].
        value: [B, H_kv, L, D].
        hidden: What enters the block, [B, L, H D].
    """

    weights: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    hidden: Tensor


@torch.no_grad()
def layer_states(task: TokenTask, tokens: Tensor) -> Iterator[LayerState]:
    """Yield the state of every block, first to last.

    Args:
        task: A model, in evaluation mode.
        tokens: int64 [B, L].

    Raises:
        ValueError: The model has linear mixers, which have no weights.
    """
    hidden = task.embedded(tokens.to(task.device))
    for block in task.gpt.blocks:
        assert isinstance(block, Block)
        layer, x = with_weights(block.attention), block.norm_attention(hidden)
        query, key, value = (
            linear(x).unflatten(-1, (-1, layer.head_dim)).transpose(1, 2)
            for linear in (layer.query, layer.key, layer.value)
        )
        yield LayerState(layer.weights(x), query, key, value, hidden)
        hidden = block(hidden)


def by_position(values: Tensor) -> dict[str, Tensor]:
    """Return norm and variance over channels, averaged over all but the position.

    Args:
        values: [..., L, D].

    Returns:
        ``norm`` and ``var``, each float64 [L] (Lazy Attention, Tables 4 to 7).
    """
    values = values.double()
    found = {"norm": values.norm(dim=-1), "var": values.var(dim=-1)}
    return {name: value.flatten(0, -2).mean(dim=0) for name, value in found.items()}
