"""Autoregressive rollouts: a world model continues an orbit from a prompt, row by row.

Tokens are fed back, and to a model whose input is ``coordinates`` the centres of their bins: a
model's prediction is a bin, and nothing finer is known of it.

A row's prediction is the ``mode`` of its distribution unless a generator asks for a sample. The
mode is what an argmax decoder of a language model takes, and it is always a place that the model
holds likely; the mean of a distribution with two peaks is a place where it expects nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from worldmodel.models.backbone import Cache
from worldmodel.models.orbit import NextTokenModel


@torch.no_grad()
def rollout(
    model: NextTokenModel,
    prompt: dict[str, Tensor],
    n_rows: int,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
) -> Tensor:
    """Return the prompt and its continuation as tokens, int64 [B, P + n_rows, 2].

    Args:
        model: The model, in evaluation mode.
        prompt: ``tokens`` int64 [B, P, 2], the time-step row first, and ``coordinates``
            [B, P, 2] in AU, which only a model of the input ``coordinates`` reads.
        n_rows: Rows to generate.
        generator: Draw every row from the model's distribution with it (x and y independently,
            as the head factorises them); it lives on the model's device. None takes the mode.
        use_cache: Keep what attention needs of earlier rows instead of computing them anew. The
            rows are the same up to rounding; the specification is without.

    Raises:
        ValueError: The prompt has no row, or the number of rows is negative.
    """
    if prompt["tokens"].shape[1] < 1:
        raise ValueError("the prompt needs at least the time-step row")
    if n_rows < 0:
        raise ValueError(f"n_rows must not be negative, got {n_rows}")
    tokens, coordinates = prompt["tokens"], prompt["coordinates"]
    caches = model.gpt.new_caches()
    for _ in range(n_rows):
        if use_cache:
            hidden = _cached(model, tokens, coordinates, caches)
        else:
            hidden = model.hidden({"tokens": tokens, "coordinates": coordinates})
        row = _next_row(model.head(hidden[:, -1:]), generator)
        centres = model.layout.low + (row + 0.5) * model.layout.width
        tokens = torch.cat([tokens, row], dim=1)
        coordinates = torch.cat([coordinates, centres.to(coordinates.dtype)], dim=1)
    return tokens


def _next_row(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """Return bins [B, 1, 2] of logits [B, 1, 2, n_bins]."""
    if generator is None:
        return logits.argmax(dim=-1)
    weights = logits.flatten(0, -2).softmax(dim=-1)
    bins = torch.multinomial(weights, 1, generator=generator)
    return bins.view(logits.shape[:-1])


def _cached(
    model: NextTokenModel, tokens: Tensor, coordinates: Tensor, caches: list[Cache]
) -> Tensor:
    """Return the hidden states of the rows that the caches have not seen, [B, new, width]."""
    n_cached = caches[0].length
    # Rows are embedded one by one, but a sequence always begins with its time-step row.
    rows = torch.cat([torch.arange(min(n_cached, 1)), torch.arange(n_cached, tokens.shape[1])])
    x = model.embedding(tokens[:, rows], coordinates[:, rows])[:, min(n_cached, 1) :]
    return model.gpt(x, caches)
