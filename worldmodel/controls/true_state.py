"""Inputs of tables of the true state, which no model observes: distance and both masses."""

from __future__ import annotations

import numpy as np
from torch.nn.functional import normalize

from worldmodel.controls.force_regression import Array, Batch
from worldmodel.models.predictions import read_rows
from worldmodel.models.state import state_values


def distance_and_masses(batch: Batch) -> Array:
    """Return r (AU), m1 and m2 (solar masses) of the read rows, [n, 3]."""
    state = batch["state"][read_rows(batch)].double()
    return np.column_stack([state[:, :2].norm(dim=-1).numpy(), state[:, 4:].numpy()])


def state(batch: Batch) -> Array:
    """Return position and velocity of the planet relative to the star and both ln m, [n, 6]."""
    return state_values(batch["state"][read_rows(batch)].double()).numpy()


def at_star(batch: Batch) -> Array:
    """Return unit vectors from the planet to the star at the read rows, [n, 2]."""
    return -normalize(batch["state"][read_rows(batch)][:, :2].double(), dim=-1).numpy()
