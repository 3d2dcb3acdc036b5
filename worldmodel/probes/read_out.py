"""Read-outs: ridge regressions of an orbit's quantities on a model's hidden states or inputs.

Fitted on labelled training sequences, asked on held-out ones. Rows are those of the second half of
a sequence: at the planet's own, as for force heads, or at its star's that follow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from orbits.protocols import Protocol
from orbits.tokens import TokenLayout
from worldmodel.controls.ridge import fit_ridge
from worldmodel.data.orbit_sequences import OrbitSequences
from worldmodel.models.gpt_world import layer_names as layer_names
from worldmodel.models.gpt_world import layers as layers
from worldmodel.models.gpt_world import world_model
from worldmodel.models.predictions import read_rows
from worldmodel.probes.orbit_targets import Array, targets
from worldmodel.probes.quantities import BODIES
from worldmodel.probes.settings import Settings
from worldmodel.world_model import is_exact, memory, seen

AT_ONCE = 250

Features = Callable[[dict[str, Tensor]], Mapping[str, Tensor]]
"""Features of each row of a batch, [B, T, k], by the names of their sources."""


def hidden_states(model: Any) -> Features:
    """Return the hidden states of each layer of a GPT, or of a model from outside, as features."""
    world = world_model(model)

    def features(batch: dict[str, Tensor]) -> dict[str, Tensor]:
        arrays = {name: batch[name].numpy() for name in ("tokens", "coordinates")}
        own = memory(world, seen(arrays, world.layout, is_exact(world)))
        return {name: torch.from_numpy(x) for name, x in world.hidden(own).items()}

    return features


def recent_places(layout: TokenLayout, n_rows: int) -> Features:
    """Return the exact places of the last rows and the time step as features: no model at all."""

    def features(batch: dict[str, Tensor]) -> dict[str, Tensor]:
        places = batch["coordinates"].clone()
        places[:, 0] = 0  # the time-step row has none
        padded = functional.pad(places, (0, 0, n_rows - 1, 0))
        last = padded.unfold(1, n_rows, 1).transpose(-1, -2).flatten(-2)  # [B, T, 2 n_rows]
        step = functional.one_hot(batch["tokens"][:, 0, 0] - layout.n_bins, len(layout.dts))
        steps = step[:, None].expand(-1, places.shape[1], -1).to(last.dtype)
        return {recent_name(n_rows): torch.cat([last, steps], dim=-1)}

    return features


def recent_name(n_rows: int) -> str:
    """Return the name of the places that :func:`recent_places` reads."""
    return f"last {n_rows} places"


def read(
    features: Features,
    protocol: Protocol,
    settings: Settings,
    shuffled: bool = False,
    body: str = "planet",
) -> dict[str, Array]:
    """Fit read-outs on labelled training sequences and test them on held-out ones.

    Args:
        features: Function of the features that are read.
        protocol: The world; its law makes the targets.
        settings: ``labels`` sequences to fit, ``n_sequences`` to test.
        shuffled: Give each training sequence the targets of another one.
        body: A name of :data:`BODIES`: whose rows are read. The targets are always the planet's, at
            the same time.

    Returns:
        For each layer and target, ``layer/target``, the residual and the total sum of squares of
        each held-out sequence, [n_sequences, 2].
    """
    seed, after = settings.data_seed, BODIES[body]
    hidden, labels = _examples(features, protocol, seed, "train", settings.labels, after)
    asked, truth = _examples(features, protocol, seed, "test", settings.n_sequences, after)
    if shuffled:
        order = np.random.default_rng(settings.seeds[0]).permutation(settings.labels)
        labels = {name: values[order] for name, values in labels.items()}
    stacked = _flat(np.concatenate(list(labels.values()), axis=-1))
    sums = {}
    for name, states in hidden.items():
        sequences = np.repeat(np.arange(settings.labels), states.shape[1])
        ridge = fit_ridge(_flat(states), stacked, sequences)
        predicted = ridge.predict(_flat(asked[name]))
        column = 0
        for target, values in truth.items():
            width = values.shape[-1]
            read_out = predicted[:, column : column + width].reshape(values.shape)
            column += width
            sums[f"{name}/{target}"] = np.stack(
                [
                    np.sum((values - read_out) ** 2, axis=(1, 2)),
                    np.sum((values - values.mean(axis=(0, 1))) ** 2, axis=(1, 2)),
                ],
                axis=-1,
            )
    return sums


def _examples(
    features: Features, protocol: Protocol, seed: int, split: str, n: int, after: int
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return features by name, [n, R, k], and targets by name, [n, R, 1 or 2]."""
    # Whatever defects a protocol publishes, what is read is the true state.
    world = dataclasses.replace(protocol, as_published=False)
    sequences = OrbitSequences(world, "force", split, seed, n)
    parts: dict[str, list[Array]] = {}
    states = []
    for batch in sequences.batches(AT_ONCE):
        (rows,) = read_rows(batch)[0].nonzero(as_tuple=True)  # the same in every sequence
        rows = rows[rows + after < batch["tokens"].shape[1]]
        for name, found in features(batch).items():
            parts.setdefault(name, []).append(found[:, rows + after].double().numpy())
        states.append(batch["state"][:, rows].double().numpy())
    by_name = {name: np.concatenate(each) for name, each in parts.items()}
    return by_name, targets(protocol.law, np.concatenate(states))


def _flat(values: Array) -> Array:
    return values.reshape(-1, values.shape[-1])
