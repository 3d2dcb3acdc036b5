"""Posterior over the exponent of a world's law, by orbit fits under each law.

The ceiling of inferring a law in context: an observer who knows that the force is a power of the
distance, and how strong it is at 1 AU, fits an orbit under each law to the points that are seen,
and weighs laws by their evidence. The prior is flat between the least and the largest exponent;
which laws a model was not trained on plays no part. In another family of laws with one parameter
the observer knows the family, and the parameter takes the exponent's place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import Akima1DInterpolator

from orbits import ceiling, laws
from orbits.arithmetic import Array
from orbits.laws.family import power_name
from orbits.protocol import Protocol
from orbits.systems import Systems

VERSION = 2
"""Raised whenever the same arguments would give other numbers."""
N_GRID = 601
"""Number of exponents at which a density is known."""
ITERATIONS = 60
"""Most steps of a fit; a law that far from the truth has next to no weight."""
MEAN_DECIMALS = 2
"""Decimals of a posterior mean under whose law orbits are fitted, so that sequences share a law."""
DOUBT = 0.01
"""Share of the flat prior in every posterior: a fit may have ended in the wrong minimum."""


class LawPosterior(NamedTuple):
    """The posterior of the law's exponent for each of N sequences.

    Attributes:
        exponents: The grid, ascending, [G].
        density: Probability density on the grid, [N, G].
        points: Rows as an orbit fitted under the law of the posterior mean has them, AU,
            [N, n_points, 2].
    """

    exponents: Array
    density: Array
    points: Array


def _power(exponent: float) -> str:
    return power_name(-exponent)


def law_posterior(
    protocol: Protocol,
    world: Systems,
    n_seen: int,
    fitted: tuple[float, ...],
    law: Callable[[float], str] = _power,
    near: float | None = None,
) -> LawPosterior:
    """Return the posterior over exponents given the first observed points.

    Fitted places change smoothly with the exponent, where the likelihood has a narrow peak; so
    it is places that are interpolated between the laws that are fitted.

    Args:
        protocol: Protocol of the observation; its law is that of the systems, which the observer is
            not told.
        world: Systems of one planet.
        n_seen: Observed points that are seen.
        fitted: Exponents of the distance under which orbits are fitted, ascending, five or more;
            or what takes their place.
        law: Returns the name of the law of each.
        near: The one from which fits go outwards, for speed; none for the world's own exponent.

    Raises:
        ValueError: There are fewer exponents, or a law does not bind the orbits.
    """
    if len(fitted) < 5 or np.any(np.diff(fitted) <= 0):
        raise ValueError(f"fitted needs five or more ascending exponents, got {fitted}")
    true = laws.get(protocol.law).exponents
    start = near if near is not None else true["r"] if true else float(np.mean(fitted))
    found = _fits(protocol, world, n_seen, fitted, law, start)
    tokens = protocol.observe(world)["tokens"][:, 1 : 1 + n_seen]
    points = np.stack([each.points for each in found])
    grid = np.linspace(fitted[0], fitted[-1], N_GRID)
    # Akima's spline is local: a law too far away to be fitted disturbs its neighbours alone.
    places = Akima1DInterpolator(fitted, points[:, :, :n_seen])(grid)
    noise = protocol.tokens.width**2 / 12
    misfit = np.sum((protocol.tokens.decode(tokens) - places) ** 2, axis=(2, 3)) / noise
    volumes = np.stack([each.log_volume for each in found if each.log_volume is not None])
    density = normalised(grid, (Akima1DInterpolator(fitted, volumes)(grid) - misfit / 2).T)
    density = (1 - DOUBT) * density + DOUBT / (grid[-1] - grid[0])
    mean = np.trapezoid(density * grid, grid, axis=1)
    return LawPosterior(
        grid, density, _mean_orbits(protocol, world, n_seen, mean, fitted, found, law)
    )


def _mean_orbits(
    protocol: Protocol,
    world: Systems,
    n_seen: int,
    mean: Array,
    fitted: tuple[float, ...],
    found: list[ceiling.Fit],
    law: Callable[[float], str],
) -> Array:
    """Return orbits fitted under the law of each sequence's posterior mean, [N, n_points, 2].

    The nearest of the laws that are fitted may be half a step away, which is more than the
    posterior's width where the prompt is long.
    """
    points = np.empty((len(mean), protocol.n_points, 2))
    population = ceiling.typical_systems(protocol)
    rounded = np.clip(np.round(mean, MEAN_DECIMALS), fitted[0], fitted[-1])
    for each in np.unique(rounded):
        rows = np.flatnonzero(rounded == each)
        near = found[int(np.abs(np.array(fitted) - each).argmin())].theta
        points[rows] = ceiling.fit(
            protocol,
            world.rows(rows),
            n_seen,
            population,
            ITERATIONS,
            believed=law(float(each)),
            start=None if near is None else near[rows],
        ).points
    return points


def _fits(
    protocol: Protocol,
    world: Systems,
    n_seen: int,
    fitted: tuple[float, ...],
    law: Callable[[float], str],
    first: float,
) -> list[ceiling.Fit]:
    """Return the fits under each law: from the nearest law outwards, each starts at the last."""
    population = ceiling.typical_systems(protocol)
    middle = int(np.abs(np.array(fitted) - first).argmin())
    found: dict[int, ceiling.Fit] = {}
    for way in (range(middle, len(fitted)), range(middle - 1, -1, -1)):
        for number in way:
            near = found.get(number - way.step)
            found[number] = ceiling.fit(
                protocol,
                world,
                n_seen,
                population,
                ITERATIONS,
                believed=law(fitted[number]),
                start=None if near is None else near.theta,
            )
    return [found[number] for number in range(len(fitted))]


def normalised(grid: Array, log_density: Array) -> Array:
    """Return densities [N, G] on a grid from their logarithms up to constants."""
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return density / np.trapezoid(density, grid, axis=1)[:, None]
