"""Medians of a model's predicted distributions of next places."""

from __future__ import annotations

import numpy as np
import torch

from orbits.arithmetic import Array
from worldmodel.models.orbit import OrbitModel
from worldmodel.probes.motion.held_out import HeldOutSystems, batches, tensors


@torch.no_grad()
def medians(model: OrbitModel, test: HeldOutSystems) -> Array:
    """Return the median of each coordinate given the true rows before it, [N, T, 2] in AU.

    Within its bin a distribution counts as even. Row 0 is zero.
    """
    layout, found = model.layout, []
    for rows in batches(test):
        read = tensors(model, {name: value[rows] for name, value in test.batch.items()})
        share = model(read).softmax(dim=-1).double()
        below = share.cumsum(dim=-1)
        median = (below < 0.5).sum(dim=-1, keepdim=True).clamp(max=layout.n_bins - 1)
        own = share.gather(-1, median)
        part = 1 - (below.gather(-1, median) - 0.5) / own
        places = layout.low + (median + part) * layout.width
        found.append(places[..., 0].cpu().numpy())
    points = np.concatenate(found)
    return np.concatenate([np.zeros_like(points[:, :1]), points], axis=1)
