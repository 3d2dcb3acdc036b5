"""Noise on the context: a model reads places with Gaussian noise and predicts the true ones.

A model that reads its own predictions in a rollout sees errors; one that has only seen exact places
has not learnt to correct them (Liu et al. 2026, arXiv:2602.06923).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from orbits.tokens import TokenLayout
from worldmodel.models.embedding import NOISY


def check_noise(sd: float) -> None:
    """Refuse a standard deviation that is none, with a ValueError."""
    if isinstance(sd, bool) or not (isinstance(sd, int | float) and 0 <= sd < math.inf):
        raise ValueError(f"context_noise must be 0 or a number of AU above it, got {sd!r}")


def with_noisy_context(
    batch: dict[str, Tensor], sd: float, layout: TokenLayout, counter: Sequence[int]
) -> dict[str, Tensor]:
    """Return a batch with the noisy inputs of the model, beside the targets.

    Args:
        batch: ``tokens`` int64 [B, T, 2], of which row 0 is the time step, and ``coordinates``
            [B, T, 2] in AU.
        sd: Standard deviation of the noise in AU, of each coordinate of each row.
        layout: The protocol's vocabulary.
        counter: Numbers that no other batch has: the noise is a pure function of them.

    Returns:
        The batch with ``noisy_tokens`` and ``noisy_coordinates``; a bin is that of the noisy place.
    """
    random = np.random.Generator(np.random.Philox(np.random.SeedSequence(tuple(counter))))
    tokens, coordinates = batch["tokens"].clone(), batch["coordinates"].clone()
    noise = sd * random.standard_normal(coordinates[:, 1:].shape)
    places = coordinates[:, 1:].double() + torch.from_numpy(noise).to(coordinates.device)
    bins = ((places - layout.low) * layout.bins_per_au).floor().clamp(0, layout.n_bins - 1)
    tokens[:, 1:], coordinates[:, 1:] = bins.to(tokens.dtype), places.to(coordinates.dtype)
    return {**batch, f"{NOISY}tokens": tokens, f"{NOISY}coordinates": coordinates}
