"""Ridge read-out: what a linear map finds in a frozen backbone's hidden states."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import RidgeCV
from torch import Tensor
from torch.utils.data import DataLoader

from worldmodel.tasks import ForceTask, prediction_columns, read_rows


@torch.no_grad()
def ridge_readout(task: ForceTask, labelled: DataLoader, test: DataLoader) -> dict[str, Tensor]:
    """Fit log force and direction by ridge regression on hidden states and predict the test set.

    Args:
        task: The backbone to read; its own head is not used.
        labelled: Batches of the labelled training sequences.
        test: Batches of the held-out sequences.

    Returns:
        The columns of a prediction file.
    """
    task.eval()
    pairs = [_features_and_targets(task, batch) for batch in labelled]
    features, targets = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    mean, std = features.mean(axis=0), features.std(axis=0) + 1e-12
    model = RidgeCV(alphas=np.logspace(-3, 4, 15)).fit((features - mean) / std, targets)
    columns = []
    for batch in test:
        found, _ = _features_and_targets(task, batch)
        answer = torch.from_numpy(model.predict((found - mean) / std)).float()
        magnitude = answer[:, 0].exp()
        direction = torch.nn.functional.normalize(answer[:, 1:], dim=-1)
        columns.append(prediction_columns(batch, magnitude, magnitude[:, None] * direction))
    return {name: torch.cat([column[name] for column in columns]) for name in columns[0]}


def _features_and_targets(
    task: ForceTask, batch: dict[str, Tensor]
) -> tuple[np.ndarray, np.ndarray]:
    rows = read_rows(batch)
    force = batch["force"][rows]
    magnitude = force.norm(dim=-1, keepdim=True)
    targets = torch.cat([magnitude.log(), force / magnitude], dim=-1)
    return task.hidden(batch)[rows].double().numpy(), targets.double().numpy()
