"""k-NN on the true state: the nearest labelled states, by a state that no model observes."""

from __future__ import annotations

from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.utils.data import DataLoader

from attention.scalars import check_size
from worldmodel.controls.force_regression import ForceRegression
from worldmodel.controls.true_state import state

NAME = "k-NN on the true state"
"""Name of this control in tables."""


def nearest_states(k: int = 2) -> ForceRegression:
    """Return the mean log force and direction of the ``k`` nearest labelled states.

    The state is position and velocity of the planet relative to the star and the logarithms of
    both masses, standardised (Vafa et al. 2025 use raw masses, which then have no weight beside
    AU and AU / year, and raw forces).

    Args:
        k: Number of neighbours.

    Raises:
        ValueError: ``k`` is below 1.
    """
    check_size("k", k)
    nearest = make_pipeline(StandardScaler(), KNeighborsRegressor(k))
    return ForceRegression(state, nearest, n_images=8, least_rows=k)


def true_state_knn(labelled: DataLoader, test: DataLoader, k: int = 2) -> dict[str, Tensor]:
    """Return the columns of a prediction file of :func:`nearest_states`, fitted and asked once."""
    return nearest_states(k).fit(labelled).columns(test)
