"""Predicted forces as the columns of a prediction file, which symbolic regression reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from orbits.runs import artefact
from worldmodel.world_model import forces, is_exact, seen


def read_rows(batch: dict[str, Tensor]) -> Tensor:
    """Return a mask [B, T] of the rows whose force is predicted: those where one is given."""
    return batch["force"].isfinite().all(dim=-1)


def prediction_columns(
    batch: dict[str, Tensor], magnitude: Tensor, vector: Tensor
) -> dict[str, Tensor]:
    """Return the columns of a prediction file, one entry per predicted row.

    Args:
        batch: A batch of the ``force`` population with B sequences.
        magnitude: Predicted magnitudes, [n].
        vector: Predicted force vectors, [n, 2].

    Returns:
        sequence_id, step, r (AU), m1, m2 (solar masses), position relative to the star [n, 2]
        (AU), force and force_vector (true), force_predicted and force_vector_predicted (solar
        mass AU / year^2).
    """
    rows = read_rows(batch)
    sequence, row = rows.nonzero(as_tuple=True)
    state, force = batch["state"][rows], batch["force"][rows]
    return {
        "sequence_id": batch["sequence_id"][sequence],
        "step": (row - 1) // 2,
        "r": state[:, :2].norm(dim=-1),
        "m1": state[:, 4],
        "m2": state[:, 5],
        "position": state[:, :2],
        "force": force.norm(dim=-1),
        "force_vector": force,
        "force_predicted": magnitude,
        "force_vector_predicted": vector,
    }


def central_columns(batch: dict[str, Tensor], magnitude: Tensor) -> dict[str, Tensor]:
    """Return :func:`prediction_columns` for magnitudes [B, T] of forces that point at the star."""
    rows = read_rows(batch)
    at_star = -functional.normalize(batch["state"][..., :2], dim=-1)[rows]
    return prediction_columns(batch, magnitude[rows], magnitude[rows][:, None] * at_star)


def force_columns(model: Any, batches: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return :func:`prediction_columns` of the forces of a model from outside.

    Args:
        model: A :class:`worldmodel.outside.Outside` whose model has ``force``.
        batches: Labelled sequences.
    """
    parts = []
    for batch in batches:
        arrays = {name: batch[name].numpy() for name in ("tokens", "coordinates")}
        found = forces(model, seen(arrays, model.layout, is_exact(model)))
        rows = read_rows(batch)
        magnitude, vector = (torch.from_numpy(x)[rows] for x in found[:2])
        parts.append(prediction_columns(batch, magnitude, vector))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def save_predictions(
    path: str | Path, columns: Mapping[str, torch.Tensor], record: Mapping[str, Any]
) -> None:
    """Write the columns of a prediction file, floats in float64, with their manifest."""
    arrays = {name: column.cpu().numpy() for name, column in columns.items()}
    artefact.save_arrays(
        path,
        {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in arrays.items()},
        record,
    )
