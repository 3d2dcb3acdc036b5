"""Medians of a model's predicted distributions of next places."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch

from orbits.arithmetic import Array
from worldmodel.models.orbit import NextTokenModel, OrbitModel
from worldmodel.probes.motion.held_out import HeldOutSystems, batches, tensors


@torch.no_grad()
def medians(model: OrbitModel, test: HeldOutSystems) -> Array:
    """Return the median of each coordinate given the true rows before it, [N, T, 2] in AU.

    Row 0 is zero.
    """
    head, found = cast(NextTokenModel, model).head, []
    for rows in batches(test):
        read = tensors(model, {name: value[rows] for name, value in test.batch.items()})
        found.append(head.median(model(read)).cpu().numpy())
    points = np.concatenate(found)
    return np.concatenate([np.zeros_like(points[:, :1]), points], axis=1)
