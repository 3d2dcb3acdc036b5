"""The observed past of a force: bin centres up to the row where it is asked, and no further."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orbits.protocols import Protocol
from orbits.tokens import TokenLayout
from worldmodel.controls.force_regression import Array, Batch
from worldmodel.models.predictions import read_rows


@dataclass(frozen=True)
class ObservedPast:
    """Places seen up to each of n asked rows, of S time steps; later places are NaN.

    A step's planet is observed before its star: at the planet's row of step s the star was last
    seen at s - 1.

    Attributes:
        planet: Places of the planet in AU, [n, S, 2].
        star: Places of the star in AU, [n, S, 2].
        step: Step of the asked row, [n].
        dt: Time step in years, [n].
    """

    planet: Array
    star: Array
    step: np.ndarray
    dt: Array

    def last(self, steps: int) -> tuple[Array, Array]:
        """Return the last places of the planet and of the star, each [n, steps, 2], oldest first.

        NaN is what lies before the first step.
        """
        rows = np.arange(len(self.step))[:, None]
        steps_back = self.step[:, None] - np.arange(steps)[::-1]
        planet, star = self.planet[rows, steps_back], self.star[rows, steps_back - 1]
        planet[steps_back < 0] = np.nan
        star[steps_back < 1] = np.nan
        return planet, star

    def separation(self) -> Array:
        """Return planet - star at the asked row, [n, 2] in AU, the star's place extrapolated."""
        planet, star = self.last(2)
        # A parabola through three points would weigh the rounding of bins more.
        return planet[:, -1] - (2 * star[:, -1] - star[:, -2])


def observed_past(batch: Batch, layout: TokenLayout) -> ObservedPast:
    """Return the past of each read row, its own place included, of one planet and its star."""
    tokens = batch["tokens"].numpy()
    sequence, row = (index.numpy() for index in read_rows(batch).nonzero(as_tuple=True))
    places = layout.decode(tokens[:, 1:])
    step = (row - 1) // 2
    planet, star = places[sequence, 0::2], places[sequence, 1::2]
    planet[np.arange(planet.shape[1]) > step[:, None]] = np.nan
    star[np.arange(star.shape[1]) >= step[:, None]] = np.nan
    dt = np.asarray(layout.dts)[tokens[:, 0, 0] - layout.n_bins]
    return ObservedPast(planet, star, step, dt[sequence])


def needs_past(protocol: Protocol, steps: int) -> None:
    """Refuse a protocol that asks a force before a number of steps were seen, with a ValueError."""
    first = ((protocol.n_points + 1) // 2 + 1) // 2  # step of the second half's first planet row
    if first < steps:
        raise ValueError(
            f"this baseline needs {steps} steps before the first force, protocol "
            f"{protocol.name!r} has {first}; n_points must be at least {4 * steps - 3}"
        )


def towards_star(past: ObservedPast) -> Array:
    """Return unit vectors from the planet to where the star is expected, [n, 2]."""
    separation = past.separation()
    length = np.linalg.norm(separation, axis=-1, keepdims=True)
    return -separation / np.maximum(length, np.finfo(np.float64).tiny)  # 0 where they are one
