"""The k-NN oracle: nearest labelled states, given the true state that no model observes."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.utils.data import DataLoader

from worldmodel.tasks import prediction_columns, read_rows


def knn_oracle(labelled: DataLoader, test: DataLoader, k: int = 2) -> dict[str, Tensor]:
    """Average the log force and the direction of the ``k`` nearest labelled states.

    The state is position and velocity of the planet relative to the star and the logarithms of
    both masses, standardised (Vafa et al. 2025 use raw masses, which then have no weight beside
    AU and AU / year, and raw forces).

    Args:
        labelled: Batches of the labelled training sequences.
        test: Batches of the held-out sequences.
        k: Number of neighbours.

    Returns:
        The columns of a prediction file.
    """
    pairs = [_states_and_targets(batch) for batch in labelled]
    states, targets = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    model = make_pipeline(StandardScaler(), KNeighborsRegressor(k)).fit(states, targets)
    columns = []
    for batch in test:
        answer = torch.from_numpy(model.predict(_states_and_targets(batch)[0])).float()
        magnitude = answer[:, 0].exp()
        direction = torch.nn.functional.normalize(answer[:, 1:], dim=-1)
        columns.append(prediction_columns(batch, magnitude, magnitude[:, None] * direction))
    return {name: torch.cat([column[name] for column in columns]) for name in columns[0]}


def _states_and_targets(batch: dict[str, Tensor]) -> tuple[np.ndarray, np.ndarray]:
    rows = read_rows(batch)
    state, force = batch["state"][rows].double(), batch["force"][rows].double()
    magnitude = force.norm(dim=-1, keepdim=True)
    known = torch.cat([state[:, :4], state[:, 4:].log()], dim=-1)
    return known.numpy(), torch.cat([magnitude.log(), force / magnitude], dim=-1).numpy()
