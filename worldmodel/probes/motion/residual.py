"""The exchange of a model's residual stream between two sequences, at some rows of one block.

The model's own forward pass runs on: what a stage hands to the next is replaced by what the same
stage made of another sequence, and all that follows is computed from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from orbits.observation import STAR
from worldmodel.models.orbit import OrbitModel
from worldmodel.probes.donors import CHANGED, OTHER, RANDOM
from worldmodel.probes.read_out import layer_names, layers

STARS, PLANETS, EVERY = "star", "planet", "every"
ROWS = (STARS, PLANETS, EVERY)
"""Rows whose residuals are exchanged."""


def stages(model: OrbitModel) -> dict[str, nn.Module]:
    """Return the modules after which the residual stream is exchanged, by name."""
    names = layer_names(model)[:-1]  # the final norm is no stage: nothing but the head follows it
    return dict(zip(names, [model.embedding, *model.gpt.blocks], strict=True))


def rows_of(body: npt.NDArray, rows: str) -> npt.NDArray[np.bool_]:
    """Return a mask of rows, [N, T], from body numbers [N, T]."""
    if rows == EVERY:
        return np.ones(body.shape, bool)
    return body == STAR if rows == STARS else body > STAR


def donors(
    model: OrbitModel, batches: Mapping[str, dict[str, Tensor]], generator: torch.Generator
) -> dict[str, dict[str, Tensor]]:
    """Return the residuals put in after each stage, each [B, T, width].

    Donors are the same system with another mass, and two controls. That of a random direction is a
    step from the residual as long as the step to the changed system's.

    Returns:
        Tensors by stage and donor.
    """
    streams = {name: layers(model, batch)[:-1] for name, batch in batches.items()}
    given: dict[str, dict[str, Tensor]] = {}
    for number, stage in enumerate(stages(model)):
        own, changed = streams["own"][number], streams[CHANGED][number]
        noise = torch.randn(own.shape, generator=generator).to(own)
        step = (changed - own).norm(dim=-1, keepdim=True)
        random = own + step * nn.functional.normalize(noise, dim=-1)
        given[stage] = {CHANGED: changed, OTHER: streams[OTHER][number], RANDOM: random}
    return given


@contextmanager
def exchanged(model: OrbitModel, stage: str, donor: Tensor, rows: Tensor) -> Iterator[None]:
    """Replace the residual stream after a stage at some rows, as long as the context lasts.

    A model that continues a sequence of T rows inside of the context keeps what was replaced; its
    own rows are as it makes them.

    Args:
        model: The model, which is asked inside of the context.
        stage: Stage, one of :func:`stages`.
        donor: Replacement of the residual, [B, T, width]; T is more than the two rows that a
            rollout with a cache embeds at once.
        rows: Rows that are replaced, [B, T].
    """
    n = donor.shape[1]

    def replace(_: nn.Module, __: object, output: Tensor) -> Tensor:
        if output.shape[1] < n:  # a row of a rollout whose cache holds the sequence
            return output
        there = torch.where(rows[..., None], donor, output[:, :n])
        return torch.cat([there, output[:, n:]], dim=1)

    hook = stages(model)[stage].register_forward_hook(replace)
    try:
        yield
    finally:
        hook.remove()
