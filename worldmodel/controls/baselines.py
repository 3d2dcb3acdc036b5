"""The law-free baselines of force prediction by name: what needs neither a law nor attention."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from orbits.protocols import Protocol
from worldmodel.controls.flat_mlp import flat_mlp
from worldmodel.controls.force_regression import ForceRegression
from worldmodel.controls.labelled_images import labels_as_trained
from worldmodel.controls.linear_filter import linear_filter
from worldmodel.controls.log_linear import log_linear
from worldmodel.controls.rbf import radial_basis
from worldmodel.controls.spline import tensor_spline
from worldmodel.controls.trees import boosted_trees
from worldmodel.controls.true_state_knn import nearest_states
from worldmodel.data.orbits import OrbitData

Factory = Callable[[Protocol, int], ForceRegression]
"""Makes an unfitted baseline from a protocol and a seed."""

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
"""Those that read tokens, as models do."""

TABLES: MappingProxyType[str, Factory] = MappingProxyType(
    {
        "2-NN on the true state": lambda protocol, seed: nearest_states(2),
        "5-NN on the true state": lambda protocol, seed: nearest_states(5),
        "trees on the true state": lambda protocol, seed: boosted_trees(seed=seed),
        "RBF on the true state": lambda protocol, seed: radial_basis(seed=seed),
        "spline on the true state": lambda protocol, seed: tensor_spline(),
    }
)
"""Those that look up the true state, which no model observes."""

BASELINES: MappingProxyType[str, Factory] = MappingProxyType({**OBSERVERS, **TABLES})


def fit_baseline(name: str, data: OrbitData, seed: int = 0) -> ForceRegression:
    """Return a baseline fitted to the labels, images and rows that a force head of ``data`` gets.

    Args:
        name: One of :data:`BASELINES`.
        data: Labelled sequences, of a number that is not unlimited.
        seed: Of what the baseline draws.

    Raises:
        ValueError: The name is unknown, or the labels do not allow a fit.
    """
    if name not in BASELINES:
        raise ValueError(f"unknown baseline {name!r}; choose from {', '.join(BASELINES)}")
    baseline = BASELINES[name](data.protocol, seed)
    return baseline.fit(labels_as_trained(data, baseline.n_images))
