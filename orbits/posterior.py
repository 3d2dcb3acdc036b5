"""Posterior of the planet's mass for an ideal observer, where the mass is mostly invisible.

In the protocols ``paper`` and ``fixed`` a planet has at most 1e-3 solar masses, and most stars
stay in one bin. The ceiling is then not a fit but an expectation over what remains possible.

The observer is told the star's mass m2 and the planet's path p(t) about the barycentre. It is not
told the centre of mass c, standard normal per axis, nor the planet's mass m1, whose prior is that
of the protocol. With q = m1 / m2 the planet stands at c + p(t) and the star at c - q p(t), and a
token says that the one or the other lies in a bin [l, h). So on each axis

    max(l_planet - p, l_star + q p)  <=  c  <  min(h_planet - p, h_star + q p),

and the likelihood of m1 is the normal measure of this interval, multiplied over both axes:
exactly. The left side is convex in q and the right side concave, so that the masses that remain
possible are one interval, and by Prékopa's theorem the likelihood is log-concave in q.

The bound is an upper one: p(t) and m2 are more than the tokens tell. Two things that would give
m1 away, but only because they are told without error, are not used: the period, by Kepler's third
law; and the relative orbit (1 + q) p(t), of which the planet's tokens show the part 1 / (1 + q).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from orbits import laws, observation
from orbits.inverse_cdf import PLANET_MASS_GAMMA
from orbits.protocol import EXOPLANETS, Protocol
from orbits.systems import Systems

Array = npt.NDArray[np.float64]

_SHAPE, SMALLEST, _SCALE = PLANET_MASS_GAMMA
LARGEST = 1e-3
"""Heavier draws of the gamma distribution are clipped to this mass, which so has an atom. The
published lower clip, 1e-9, lies below :data:`SMALLEST` and never acts."""

_NODES = 512
_HALVINGS = 60
_SLACK = 1e-10  # AU by which bins are widened: coordinates carry rounding errors of 1e-14
_AT_ONCE = 16  # sequences; with 500 steps a chunk takes some 100 MB


class Posterior(NamedTuple):
    """Posterior of the planet's mass m1 (solar masses) in each of N sequences.

    Attributes:
        m1_mean: Posterior mean of m1, [N]: the best estimate under squared error.
        m1_log_mean: Posterior mean of ln m1, [N].
        m1_log_sd: Posterior standard deviation of ln m1 in nats, [N].
    """

    m1_mean: Array
    m1_log_mean: Array
    m1_log_sd: Array


def serves(protocol: Protocol) -> bool:
    """Tell whether a protocol's masses have the prior of this module."""
    return protocol.sampler in EXOPLANETS


def mass_posterior(protocol: Protocol, seed: int, split: str, indices: npt.ArrayLike) -> Posterior:
    """Return the posterior of the planet's mass in N two-body sequences of a protocol."""
    return _posterior(protocol, _systems(protocol, seed, split, indices))


def implied_force(
    protocol: Protocol, seed: int, split: str, indices: npt.ArrayLike, m1: Array
) -> Array:
    """Return the magnitude of the force if the planets had the masses ``m1`` [N], [N, T].

    Distance and star mass are told and the law is proportional to m1 (up to terms of m1 / m2;
    these protocols refuse any other), so the posterior mean of m1 gives the mean of F, the best
    estimate of F, and the mean of ln m1 the geometric mean of F, the best estimate of ln F. The
    direction is known: the force points at the star. Solar mass AU / year^2 on planet rows, NaN
    elsewhere; T = 1 + n_points.
    """
    world = _systems(protocol, seed, split, indices)
    distance = np.linalg.norm(_relative(protocol, world), axis=-1)
    force = np.full((len(m1), 1 + protocol.n_points), np.nan)
    force[:, 1::2] = laws.get(protocol.law).magnitude(
        distance, m1[:, None], world.star_mass[:, None]
    )
    return force


def _systems(protocol: Protocol, seed: int, split: str, indices: npt.ArrayLike) -> Systems:
    if not serves(protocol):
        raise ValueError(
            f"protocol {protocol.name!r} has another prior of masses than the exoplanets': "
            "take paper or fixed, or orbits.ceiling where masses are visible"
        )
    return protocol.systems(seed, split, indices, "force")


def _posterior(protocol: Protocol, world: Systems) -> Posterior:
    n = len(world.star_mass)
    chunks = [
        _moments(_constraints(protocol, world.rows(np.arange(first, min(first + _AT_ONCE, n)))))
        for first in range(0, n, _AT_ONCE)
    ]
    return Posterior(*(np.concatenate(part) for part in zip(*chunks, strict=True)))


class _Constraints(NamedTuple):
    """Bounds of the centre of mass c: lower + q slope <= c < upper + q slope, axis by axis.

    Attributes:
        lower: Lower bounds at q = 0, [N, rows, 2]; those of the planet come first, as one row.
        upper: Upper bounds at q = 0, [N, rows, 2].
        slope: p(t), zero for the planet, [N, rows, 2].
        m1: The true planet mass, [N]: a possible mass, from which the others are searched.
        m2: The star's mass, [N].
    """

    lower: Array
    upper: Array
    slope: Array
    m1: Array
    m2: Array

    def bounds(self, m1: Array) -> tuple[Array, Array]:
        """Return the interval of c for some masses [N, K], twice [N, K, 2]."""
        shift = (m1 / self.m2[:, None])[:, :, None, None] * self.slope[:, None]
        return (
            np.max(self.lower[:, None] + shift, axis=2),
            np.min(self.upper[:, None] + shift, axis=2),
        )

    def likelihood(self, m1: Array) -> Array:
        """Return the probability of the tokens for some masses [N, K]."""
        lower, upper = self.bounds(m1)
        # In the upper tail the distribution function is 1 minus something small: take the lower.
        mirrored = lower > 0
        low, high = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
        return np.maximum(special.ndtr(high) - special.ndtr(low), 0).prod(axis=-1)

    def furthest(self, end: float) -> Array:
        """Return the possible mass that is closest to an end of the prior, [N]."""

        def possible(m1: Array) -> npt.NDArray[np.bool_]:
            lower, upper = self.bounds(m1[:, None])
            return np.all(lower < upper, axis=(1, 2))

        inside, outside = self.m1, np.full_like(self.m1, end)
        reached = possible(outside)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            holds = possible(middle)
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        return np.where(reached, end, inside)


def _constraints(protocol: Protocol, world: Systems) -> _Constraints:
    bins = protocol.observe(world)["tokens"][:, 1:].astype(np.float64)
    layout = protocol.tokens
    # The outermost bins hold what lies beyond the box, too.
    lower = np.where(bins == 0, -np.inf, layout.low + bins * layout.width - _SLACK)
    upper = np.where(
        bins == layout.n_bins - 1, np.inf, layout.low + (bins + 1) * layout.width + _SLACK
    )
    m1, m2 = world.planet_mass[:, 0], world.star_mass
    path = (m2 / (m1 + m2))[:, None, None] * _relative(protocol, world)
    star = path[:, : bins.shape[1] // 2]
    planet_lower = np.max(lower[:, ::2] - path, axis=1, keepdims=True)
    planet_upper = np.min(upper[:, ::2] - path, axis=1, keepdims=True)
    return _Constraints(
        lower=np.concatenate([planet_lower, lower[:, 1::2]], axis=1),
        upper=np.concatenate([planet_upper, upper[:, 1::2]], axis=1),
        slope=np.concatenate([np.zeros_like(planet_lower), star], axis=1),
        m1=m1,
        m2=m2,
    )


def _relative(protocol: Protocol, world: Systems) -> Array:
    """Return the planet's places relative to the star, [N, steps, 2] in AU."""
    times = observation.times(world, protocol.dts, protocol.n_points, n_planets=1)
    position, _ = observation.relative(world, 0, world.mean_anomaly[:, 0], times, protocol.law)
    return position


def _moments(seen: _Constraints) -> Posterior:
    """Integrate over the masses that remain possible, with nodes at equal steps of the prior.

    However narrow the interval is, the nodes lie in it. The atom at the largest mass is a node
    of its own.
    """
    least, most = seen.furthest(SMALLEST), seen.furthest(LARGEST)
    start, stop = _prior_below(least), _prior_below(most)
    steps = (np.arange(_NODES) + 0.5) / _NODES
    quantiles = start[:, None] + (stop - start)[:, None] * steps
    free = SMALLEST + _SCALE * special.gammaincinv(_SHAPE, quantiles)
    m1 = np.column_stack([np.clip(free, least[:, None], most[:, None]), most])
    prior = np.repeat((stop - start)[:, None] / _NODES, _NODES, axis=1)
    atom = np.where(most == LARGEST, 1 - _prior_below(np.array(LARGEST)), 0)
    weight = np.column_stack([prior, atom]) * seen.likelihood(m1)
    weight /= weight.sum(axis=1, keepdims=True)
    mean, log_mean = np.sum(weight * m1, axis=1), np.sum(weight * np.log(m1), axis=1)
    variance = np.sum(weight * (np.log(m1) - log_mean[:, None]) ** 2, axis=1)
    return Posterior(mean, log_mean, np.sqrt(variance))


def _prior_below(m1: Array) -> Array:
    """Return the prior probability of a mass below ``m1``."""
    return special.gammainc(_SHAPE, (m1 - SMALLEST) / _SCALE)
