"""Gradient-boosted trees on the true state: constant pieces, and no slope outside of them."""

from __future__ import annotations

from sklearn.ensemble import HistGradientBoostingRegressor

from attention.scalars import check_size
from worldmodel.controls.force_regression import ForceRegression
from worldmodel.controls.true_state import at_star, distance_and_masses

LEAF = 20
"""Fewest rows of a leaf."""


def boosted_trees(n_trees: int = 500, seed: int = 0) -> ForceRegression:
    """Return boosted trees of ln F on distance and masses; the force points at the star.

    Args:
        n_trees: Trees that are added up.
        seed: Of the rows that bins are made from.

    Raises:
        ValueError: ``n_trees`` is below 1.
    """
    check_size("n_trees", n_trees)
    trees = HistGradientBoostingRegressor(
        max_iter=n_trees, min_samples_leaf=LEAF, early_stopping=False, random_state=seed
    )
    return ForceRegression(distance_and_masses, trees, direction=at_star, least_rows=2 * LEAF)
