"""Controls: force predictions without a trained model, which stand beside models.

A control is made once, from labelled sequences where it needs any, and then predicts the forces of
any test sequences: of the training box, and of the exam outside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import lightning
import numpy as np
import torch
from torch import Tensor

from benchmarks.newton.observers import observed_force
from orbits import laws
from orbits.best_observer import best_observer
from orbits.causal_ceiling import causal_ceiling as orbit_fits
from symreg.exponents import fit_exponents
from symreg.points import NAMES
from worldmodel.controls.baselines import fit_baseline
from worldmodel.controls.ridge import fitted_readout
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import joined
from worldmodel.models.orbit import ForceModel
from worldmodel.models.predictions import central_columns

Columns = dict[str, Tensor]
"""The columns of a prediction file."""
Predictor = Callable[[OrbitData], Columns]
"""Function that predicts the forces of test sequences."""
Batch = dict[str, Tensor]
Plain = dict[str, Any]


def true_force() -> Predictor:
    """Return the true force."""
    return _central(lambda batch, data: batch["force"].norm(dim=-1))


def ceiling() -> Predictor:
    """Return the best observer of whole sequences, who knows the physics."""

    def best_fit(batch: Batch, data: OrbitData) -> Tensor:
        indices = batch["sequence_id"].numpy()
        answer = best_observer(data.protocol, data.hparams["seed"], "test", indices)
        return torch.from_numpy(answer.force)

    return _central(best_fit)


def causal_ceiling() -> Predictor:
    """Return the observer who knows the physics, and sees the rows that a model sees."""

    def best_fit(batch: Batch, data: OrbitData) -> Tensor:
        indices = batch["sequence_id"].numpy()
        answer = orbit_fits(data.protocol, data.hparams["seed"], "test", indices)
        return torch.from_numpy(answer.force)

    return _central(best_fit)


def baseline(name: str, labelled: Plain, seed: int = 0) -> Predictor:
    """Return a law-free baseline, fitted to the labels, images and rows that models get."""
    fitted = fit_baseline(name, OrbitData(**labelled), seed)
    return lambda data: fitted.columns(data.test_dataloader())


def observer(believed: str, past: bool) -> Predictor:
    """Return an observer who carries the law of another world."""
    carried = laws.get(believed)

    def force(batch: Batch, data: OrbitData) -> Tensor:
        return observed_force(batch, laws.get(data.protocol.law), carried, past)

    return _central(force)


def power_law(labelled: Plain) -> Predictor:
    """Return a power law of true distance and masses, fitted to labelled sequences."""
    batches = OrbitData(**labelled).labelled_dataloader()
    columns = joined(central_columns(batch, batch["force"].norm(dim=-1)) for batch in batches)
    X = np.stack([columns[name].numpy() for name in NAMES], axis=1)
    target = columns["force"].numpy()
    fitted = fit_exponents(X, target, np.arange(len(target)), n_boot=2)
    exponents = {name: interval.value for name, interval in fitted.exponents.items()}

    def force(batch: Batch, data: OrbitData) -> Tensor:
        state = batch["state"]
        r = state[..., :2].norm(dim=-1)
        return (
            fitted.constant.value
            * r ** exponents["r"]
            * state[..., 4] ** exponents["m1"]
            * state[..., 5] ** exponents["m2"]
        )

    return _central(force)


def untrained(labelled: Plain, model: Plain, seed: int) -> Predictor:
    """Return a ridge regression on the hidden states of a backbone with random weights."""
    lightning.seed_everything(seed, verbose=False)
    backbone = ForceModel(**model)
    loader = OrbitData(**labelled).labelled_dataloader()
    readout = fitted_readout(backbone, loader)
    return lambda data: readout(data.test_dataloader())


CONTROLS: Mapping[str, Callable[..., Predictor]] = {
    control.__name__: control
    for control in (true_force, ceiling, causal_ceiling, baseline, observer, power_law, untrained)
}
"""Controls by name; a cell calls one with arguments that it holds as plain data."""


def _central(magnitude: Callable[[Batch, OrbitData], Tensor]) -> Predictor:
    """Return a predictor of forces that point at the star, from their magnitudes [B, T]."""
    return lambda data: joined(
        central_columns(batch, magnitude(batch, data)) for batch in data.test_dataloader()
    )
