"""Radial basis functions on the true state: bumps around some labelled rows, 0 far from all."""

from __future__ import annotations

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from attention.scalars import check_size
from worldmodel.controls.force_regression import ForceRegression
from worldmodel.controls.true_state import at_star, distance_and_masses

GAMMA = 0.5
"""Gamma of exp(-gamma d^2): bumps one standard deviation of ln r, ln m1 and ln m2 wide."""
STRENGTH = 1e-6
"""Penalty of the ridge regression."""


def radial_basis(n_centres: int = 300, seed: int = 0) -> ForceRegression:
    """Return the kernel ridge regression of ln F on ln r, ln m1 and ln m2 (Nystroem's).

    Far from its centres it answers one force, the intercept; the direction is the star's.

    Args:
        n_centres: Labelled rows that bumps are centred on.
        seed: Draws them.

    Raises:
        ValueError: ``n_centres`` is below 1.
    """
    check_size("n_centres", n_centres)
    bumps = make_pipeline(
        FunctionTransformer(np.log),
        StandardScaler(),
        Nystroem(gamma=GAMMA, n_components=n_centres, random_state=seed),
        Ridge(STRENGTH),
    )
    return ForceRegression(distance_and_masses, bumps, direction=at_star, least_rows=n_centres)
