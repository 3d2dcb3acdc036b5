"""Log-linear regressions of force on four numbers that tokens give, causally, without a network.

``motion``: past rms accelerations of both bodies, past mean distance, distance. With physics in
five weights, a mass is an acceleration times a squared distance. ``geometry``: past rms excursions
of both bodies in place of their accelerations, which no order in time and no time step enters; so
it knows the ratio of the masses, and their sum only where the time step tells the period.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from sklearn.linear_model import LinearRegression

from attention.scalars import check_size
from orbits.protocols import Protocol
from orbits.runs.choices import check_choice
from worldmodel.controls.force_regression import Array, Batch, ForceRegression
from worldmodel.controls.observed_past import ObservedPast, needs_past, observed_past, towards_star

Numbers = Literal["motion", "geometry"]


def log_linear(
    protocol: Protocol, numbers: Numbers = "motion", time_step: bool = False, lag: int = 2
) -> ForceRegression:
    """Return the regression of ln F on the logarithms of four numbers, five with the time step.

    Args:
        protocol: Protocol of the observation.
        numbers: ``motion`` or ``geometry``.
        time_step: Give it the logarithm of the time step too.
        lag: Time steps between the three places that make an acceleration; rounding to bins
            weighs less in a longer one, and the path is straighter in a shorter one.

    Raises:
        ValueError: The numbers are unknown, or too little is seen before a force is asked.
    """
    check_choice("numbers", numbers, get_args(Numbers))
    check_size("lag", lag)
    needs_past(protocol, 2 * lag + 1)
    layout = protocol.tokens

    def features(batch: Batch) -> Array:
        past = observed_past(batch, layout)
        # `least` is what rounding to bins alone makes of a body at rest.
        if numbers == "motion":
            least = layout.width / lag**2
            columns = [np.maximum(a, least) / past.dt**2 for a in _accelerations(past, lag)]
        else:
            least = layout.width / np.sqrt(6)
            columns = [np.maximum(size, least) for size in _excursions(past)]
        distances = np.linalg.norm(past.planet - past.star, axis=-1)
        apart = _mean(distances[..., None])[:, 0], np.linalg.norm(past.separation(), axis=-1)
        # Where both bodies have left the box they lie in one bin.
        columns += [np.maximum(x, layout.width / 2) for x in apart]
        if time_step:
            columns.append(past.dt)
        return np.log(np.stack(columns, axis=1))

    return ForceRegression(
        features,
        LinearRegression(),
        direction=lambda batch: towards_star(observed_past(batch, layout)),
        least_rows=6 if time_step else 5,
    )


def _accelerations(past: ObservedPast, lag: int) -> list[Array]:
    """Return past rms second differences of planet and star per squared step, each [n] in AU."""
    return [
        _rms((x[:, 2 * lag :] - 2 * x[:, lag:-lag] + x[:, : -2 * lag]) / lag**2)
        for x in (past.planet, past.star)
    ]


def _excursions(past: ObservedPast) -> list[Array]:
    """Return past rms distances of planet and star from their mean places, each [n] in AU."""
    return [_rms(x - _mean(x)[:, None]) for x in (past.planet, past.star)]


def _rms(vectors: Array) -> Array:
    """Return root mean square lengths of [n, S, 2] over the seen steps, [n]."""
    return np.sqrt(np.sum(_mean(vectors**2), axis=-1))


def _mean(values: Array) -> Array:
    """Return means of [n, S, k] over the seen steps, [n, k]; NaN without any."""
    with np.errstate(invalid="ignore"):
        return np.nansum(values, axis=1) / np.isfinite(values).sum(axis=1)
