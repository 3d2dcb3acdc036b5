"""Autoregressive rollouts: a world model continues an orbit from a prompt, row by row.

What is fed back are tokens, and for a model whose input is ``coordinates`` the centres of their
bins: a model's answer is a bin, and nothing finer is known of it.

A row's answer is the ``mode`` of its distribution unless a generator asks for a sample. The mode
is what an argmax decoder of a language model takes, and it is always a place that the model holds
likely; the mean of a distribution with two peaks is a place where it expects nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from worldmodel.gpt import Block, Cache
from worldmodel.tasks import NextTokenTask


@torch.no_grad()
def rollout(
    task: NextTokenTask,
    prompt: dict[str, Tensor],
    n_rows: int,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
) -> Tensor:
    """Return the prompt and its continuation as tokens, int64 [B, P + n_rows, 2].

    Args:
        task: The model, in evaluation mode.
        prompt: ``tokens`` int64 [B, P, 2], the time-step row first, and ``coordinates``
            [B, P, 2] in AU, which only a model of the input ``coordinates`` reads.
        n_rows: Rows to generate.
        generator: Draw every row from the model's distribution with it (x and y independently,
            as the head factorises them); it lives on the model's device. None takes the mode.
        use_cache: Keep what attention needs of earlier rows instead of computing them anew. The
            rows are the same up to rounding; the specification is without.

    Raises:
        ValueError: The prompt has no row, or a negative number of rows is asked.
    """
    if prompt["tokens"].shape[1] < 1:
        raise ValueError("the prompt needs at least the time-step row")
    if n_rows < 0:
        raise ValueError(f"n_rows must not be negative, got {n_rows}")
    tokens, coordinates = prompt["tokens"], prompt["coordinates"]
    caches = task.gpt.new_caches()
    for _ in range(n_rows):
        if use_cache:
            hidden = _cached(task, tokens, coordinates, caches)
        else:
            hidden = task.hidden({"tokens": tokens, "coordinates": coordinates})
        row = _answer(task.head(hidden[:, -1:]), generator)
        centres = task.layout.low + (row + 0.5) * task.layout.width
        tokens = torch.cat([tokens, row], dim=1)
        coordinates = torch.cat([coordinates, centres.to(coordinates.dtype)], dim=1)
    return tokens


def _answer(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """Return bins [B, 1, 2] of logits [B, 1, 2, n_bins]."""
    if generator is None:
        return logits.argmax(dim=-1)
    weights = logits.flatten(0, -2).softmax(dim=-1)
    drawn = torch.multinomial(weights, 1, generator=generator)
    return drawn.view(logits.shape[:-1])


def _cached(
    task: NextTokenTask, tokens: Tensor, coordinates: Tensor, caches: list[Cache]
) -> Tensor:
    """Return the hidden states of the rows that the caches have not seen, [B, new, width]."""
    seen = caches[0].length
    # Rows are embedded one by one, but a sequence always begins with its time-step row.
    kept = torch.cat([torch.arange(min(seen, 1)), torch.arange(seen, tokens.shape[1])])
    x = task.embedding(tokens[:, kept], coordinates[:, kept])[:, min(seen, 1) :]
    for block, cache in zip(task.gpt.blocks, caches, strict=True):
        assert isinstance(block, Block)
        x = block(x, cache)
    return task.gpt.norm(x)
