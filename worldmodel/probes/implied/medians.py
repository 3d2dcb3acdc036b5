"""Medians of a model's predicted distributions of next places."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbits.arithmetic import Array
from worldmodel.probes.motion.held_out import HeldOutSystems, batches, seen_by
from worldmodel.world_model import predicted


def medians(model: Any, test: HeldOutSystems) -> Array:
    """Return the median of each coordinate given the true rows before it, [N, T, 2] in AU.

    Row 0 is zero.
    """
    found = []
    for rows in batches(test):
        some = {name: value[rows] for name, value in test.batch.items()}
        found.append(predicted(*seen_by(model, some)).median()[:, :-1])
    points = np.concatenate(found).astype(np.float64)
    return np.concatenate([np.zeros_like(points[:, :1]), points], axis=1)
