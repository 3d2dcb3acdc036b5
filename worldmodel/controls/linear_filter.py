"""Linear filters of force: ridge regressions of ln F on the last 12 steps of both bodies.

A linear map of places cannot tell a force's size: it changes sign when the world is turned by half,
and ln F does not. So with images of labels it learns their mean. The same filter of the logarithms
of lengths (distances, displacements, time step) has no such bar.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from orbits.protocols import Protocol
from worldmodel.controls.force_regression import Array, Batch, ForceRegression
from worldmodel.controls.linear_autoregression import STEPS
from worldmodel.controls.observed_past import needs_past, observed_past, towards_star

STRENGTH = 1.0
"""Penalty of the ridge regression, on standardised inputs."""


def linear_filter(protocol: Protocol, logarithms: bool = False) -> ForceRegression:
    """Return the ridge regression of ln F on vectors between places of the last 12 steps.

    Args:
        protocol: Protocol of the observation.
        logarithms: Take logarithms of the lengths of these vectors (planet - last star, star -
            last star, and the planet's displacements) and of the time step in their place.

    Raises:
        ValueError: Less than 12 steps are seen before a force is asked.
    """
    needs_past(protocol, STEPS)
    layout = protocol.tokens

    def features(batch: Batch) -> Array:
        past = observed_past(batch, layout)
        planet, star = past.last(STEPS)
        origin = star[:, -1:]
        if not logarithms:
            return np.hstack([_flat(planet - origin), _flat(star[:, :-1] - origin)])
        vectors = [planet - origin, star[:, :-1] - origin, np.diff(planet, axis=1)]
        lengths = np.hstack([np.linalg.norm(v, axis=-1) for v in vectors])
        # A body that stays in its bin has moved by less than that.
        return np.log(np.column_stack([np.maximum(lengths, layout.width / 2), past.dt]))

    return ForceRegression(
        features,
        make_pipeline(StandardScaler(), Ridge(STRENGTH)),
        direction=lambda batch: towards_star(observed_past(batch, layout)),
        n_images=2 if logarithms else 8,
        least_rows=2 * (2 * STEPS - 1) + 1,
    )


def _flat(vectors: Array) -> Array:
    return vectors.reshape(len(vectors), -1)
