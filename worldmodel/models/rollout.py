"""Autoregressive rollouts: a world model continues an orbit from a prompt, row by row.

A row is the likeliest bins of a distribution over bins, or a sample where a generator is given.
That is what an argmax decoder of a language model takes, and it is always a place that the model
holds likely; the mean of a distribution with two peaks is a place where it expects nothing. Tokens
are fed back, and to a model whose input is ``coordinates`` the centres of their bins: such a
prediction is a bin, and nothing finer is known of it. A density gives its medians as a row, which
are fed back as they are.
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
            as the head factorises them); it lives on the model's device. None takes what is
            likeliest.
        use_cache: Keep what attention needs of earlier rows instead of computing them anew, where
            it stays as it is (not under dynamic NTK). The rows are the same up to rounding; the
            specification is without.

    Raises:
        ValueError: The prompt has no row, or the number of rows is negative.
    """
    return rollout_with_places(model, prompt, n_rows, generator, use_cache)[0]


@torch.no_grad()
def rollout_with_places(
    model: NextTokenModel,
    prompt: dict[str, Tensor],
    n_rows: int,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return the tokens of :func:`rollout`, and the places in AU of the continuation alone.

    Returns:
        Tokens int64 [B, P + n_rows, 2]; places float64 [B, n_rows, 2], which are the centres of
        the bins unless the model predicts a density.
    """
    if prompt["tokens"].shape[1] < 1:
        raise ValueError("the prompt needs at least the time-step row")
    if n_rows < 0:
        raise ValueError(f"n_rows must not be negative, got {n_rows}")
    tokens, coordinates = prompt["tokens"], prompt["coordinates"]
    caches, places = model.gpt.new_caches(), []
    use_cache = use_cache and not model.gpt.follows_length
    for _ in range(n_rows):
        if use_cache:
            hidden = _cached(model, tokens, coordinates, caches)
        else:
            hidden = model.hidden({"tokens": tokens, "coordinates": coordinates})
        output = model.head(hidden[:, -1:])
        if generator is None:
            row = model.head.likeliest(output)
        else:
            row = model.head.sample(output, generator)
        places.append(row.place)
        tokens = torch.cat([tokens, row.bins], dim=1)
        coordinates = torch.cat([coordinates, row.place.to(coordinates.dtype)], dim=1)
    nothing = coordinates[:, :0].double()
    return tokens, torch.cat([nothing, *places], dim=1)


def _cached(
    model: NextTokenModel, tokens: Tensor, coordinates: Tensor, caches: list[Cache]
) -> Tensor:
    """Return the hidden states of the rows that the caches have not seen, [B, new, width]."""
    n_cached = caches[0].length
    # Rows are embedded one by one, but a sequence always begins with its time-step row.
    rows = torch.cat([torch.arange(min(n_cached, 1)), torch.arange(n_cached, tokens.shape[1])])
    x = model.embedding(tokens[:, rows], coordinates[:, rows])[:, min(n_cached, 1) :]
    return model.gpt(x, caches)
