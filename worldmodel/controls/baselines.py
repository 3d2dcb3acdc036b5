"""The law-free baselines of force prediction by name; they have neither a law nor attention.

Their names are asked for before torch is imported, so what fits them is named by import path.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from orbits.protocols import Protocol
from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred

if TYPE_CHECKING:
    from worldmodel.controls.force_regression import ForceRegression
    from worldmodel.data.orbits import OrbitData

flat_mlp = deferred("worldmodel.controls.flat_mlp:flat_mlp")
labels_as_trained = deferred("worldmodel.controls.labelled_images:labels_as_trained")
linear_filter = deferred("worldmodel.controls.linear_filter:linear_filter")
log_linear = deferred("worldmodel.controls.log_linear:log_linear")
radial_basis = deferred("worldmodel.controls.rbf:radial_basis")
tensor_spline = deferred("worldmodel.controls.spline:tensor_spline")
boosted_trees = deferred("worldmodel.controls.trees:boosted_trees")
nearest_states = deferred("worldmodel.controls.true_state_knn:nearest_states")
Factory = Callable[[Protocol, int], Any]
"""Function of a protocol and a seed that makes an unfitted
:class:`~worldmodel.controls.force_regression.ForceRegression`."""

OBSERVERS: MappingProxyType[str, Factory] = MappingProxyType(
    {
        "log-linear of motion": lambda protocol, seed: log_linear(protocol),
        "log-linear of motion and time step": lambda protocol, seed: log_linear(
            protocol, time_step=True
        ),
        "log-linear of geometry": lambda protocol, seed: log_linear(protocol, "geometry"),
        "log-linear of geometry and time step": lambda protocol, seed: log_linear(
            protocol, "geometry", time_step=True
        ),
        "linear filter": lambda protocol, seed: linear_filter(protocol),
        "log-linear filter": lambda protocol, seed: linear_filter(protocol, logarithms=True),
        "flat MLP": lambda protocol, seed: flat_mlp(protocol, seed=seed),
    }
)
"""Baselines that read tokens, as models do."""

TABLES: MappingProxyType[str, Factory] = MappingProxyType(
    {
        "2-NN on the true state": lambda protocol, seed: nearest_states(2),
        "5-NN on the true state": lambda protocol, seed: nearest_states(5),
        "trees on the true state": lambda protocol, seed: boosted_trees(seed=seed),
        "RBF on the true state": lambda protocol, seed: radial_basis(seed=seed),
        "spline on the true state": lambda protocol, seed: tensor_spline(),
    }
)
"""Baselines that look up the true state, which no model observes."""

BASELINES: MappingProxyType[str, Factory] = MappingProxyType({**OBSERVERS, **TABLES})


def fit_baseline(name: str, data: OrbitData, seed: int = 0) -> ForceRegression:
    """Return a baseline fitted to the labels, images and rows that a head of ``data`` gets.

    Args:
        name: One of :data:`BASELINES`.
        data: Labelled sequences, of a number that is not unlimited.
        seed: Of what the baseline draws.

    Raises:
        ValueError: The name is unknown, or the labels do not allow a fit.
    """
    check_choice("baseline", name, BASELINES)
    baseline: ForceRegression = BASELINES[name](data.protocol, seed)
    return baseline.fit(labels_as_trained(data, baseline.n_images))
