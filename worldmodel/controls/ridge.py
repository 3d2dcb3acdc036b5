"""Ridge read-out: a linear map of a frozen backbone's hidden states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.utils.data import DataLoader

from worldmodel.controls.force_regression import LARGEST
from worldmodel.data.sequences import joined
from worldmodel.models.orbit import ForceModel, OrbitModel
from worldmodel.models.predictions import prediction_columns, read_rows

Columns = dict[str, Tensor]
ALPHAS = np.logspace(-3, 4, 15)


def ridge_readout(task: OrbitModel, labelled: DataLoader, test: DataLoader) -> Columns:
    """Fit log force and direction by ridge regression on hidden states and predict the test set.

    Args:
        task: The backbone to read; its own head is not used.
        labelled: Batches of the labelled training sequences.
        test: Batches of the held-out sequences.

    Returns:
        The columns of a prediction file.
    """
    return fitted_readout(task, labelled)(test)


def fitted_readout(task: OrbitModel, labelled: DataLoader) -> Callable[[DataLoader], Columns]:
    """Return the predictor that :func:`ridge_readout` fits, for any test set."""
    task.eval()
    parts = [_features_and_targets(task, batch) for batch in labelled]
    features, targets, sequences = (np.concatenate(part) for part in zip(*parts, strict=True))
    model = fit_ridge(features, targets, sequences)

    def predict(test: DataLoader) -> Columns:
        columns = []
        for batch in test:
            found, *_ = _features_and_targets(task, batch)
            predicted = torch.from_numpy(model.predict(found)).float()
            magnitude = predicted[:, 0].clamp(-LARGEST, LARGEST).exp()
            direction = torch.nn.functional.normalize(predicted[:, 1:], dim=-1)
            columns.append(prediction_columns(batch, magnitude, magnitude[:, None] * direction))
        return joined(columns)

    return predict


@torch.no_grad()
def with_ridge_head(task: ForceModel, labelled: DataLoader) -> None:
    """Give a force model the head that ridge regression fits to its hidden states.

    Its predictions are then those of :func:`ridge_readout`.

    Args:
        task: The model; its head is replaced.
        labelled: Batches of the labelled training sequences.
    """
    task.eval()
    parts = [_features_and_targets(task, batch) for batch in labelled]
    scaler, ridge = fit_ridge(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    weight = ridge.coef_ / scaler.scale_
    task.head.target = "log"
    task.head.readout.weight.copy_(torch.from_numpy(weight))
    task.head.readout.bias.copy_(torch.from_numpy(ridge.intercept_ - weight @ scaler.mean_))
    task.head.mean.zero_()
    task.head.std.fill_(1.0)


def fit_ridge(features: npt.NDArray, targets: npt.NDArray, sequences: npt.NDArray) -> Pipeline:
    """Fit a ridge regression on standardised features, each target with its own strength.

    The strength is chosen on a fifth of the sequences, which the other four do not see: rows of
    one sequence share their masses, so leaving out single rows would choose too little of it.

    Args:
        features: [n, k].
        targets: [n, m], m > 1.
        sequences: The sequence of each row, [n].

    Returns:
        Something with ``predict``, which maps features [n, k] to targets [n, m].

    Raises:
        ValueError: The rows are of one sequence.
    """
    order = np.unique(sequences)
    if len(order) < 2:
        raise ValueError("a ridge regression needs labels of at least 2 sequences, got 1")
    held = np.isin(sequences, order[-max(1, len(order) // 5) :])
    errors = []
    for alpha in ALPHAS:
        model = make_pipeline(StandardScaler(), Ridge(alpha)).fit(features[~held], targets[~held])
        errors.append(np.mean((model.predict(features[held]) - targets[held]) ** 2, axis=0))
    best = ALPHAS[np.argmin(errors, axis=0)]
    return make_pipeline(StandardScaler(), Ridge(best)).fit(features, targets)


@torch.no_grad()
def _features_and_targets(
    task: OrbitModel, batch: dict[str, Tensor]
) -> tuple[npt.NDArray, npt.NDArray, npt.NDArray]:
    rows = read_rows(batch)
    force = batch["force"][rows]
    magnitude = force.norm(dim=-1, keepdim=True)
    targets = torch.cat([magnitude.log(), force / magnitude], dim=-1)
    sequences = batch["sequence_id"][:, None].expand(rows.shape)[rows]
    return task.hidden(batch)[rows].double().numpy(), targets.double().numpy(), sequences.numpy()
