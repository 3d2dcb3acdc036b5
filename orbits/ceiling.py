"""The ceiling of a protocol: what its observations allow at best.

An observer who knows the physics fits a two-body orbit to the bin centres of a whole sequence
and computes the force from it; fitted to the first points alone, the orbit says where the bodies
go next. No model that sees the same tokens can be expected to do better.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import laws, motion
from orbits.arithmetic import PI, TURN
from orbits.observation import times
from orbits.protocols import Protocol
from orbits.systems import Systems

Array = npt.NDArray[np.float64]

_PRIOR_SYSTEMS = 500


class Fit(NamedTuple):
    """Two-body orbits that fit N observations best.

    Attributes:
        m1: Planet masses in solar masses, [N].
        m2: Star masses in solar masses, [N].
        points: Where the bodies are in AU, in turn as they are observed, [N, n_points, 2].
        relative: Planet - star in AU at every time step, [N, steps, 2].
    """

    m1: Array
    m2: Array
    points: Array
    relative: Array


def ceiling_force(
    protocol: Protocol, seed: int, split: str, indices: npt.ArrayLike, iterations: int = 6
) -> Array:
    """Return the magnitude of the force that the best orbit fit implies, [N, T].

    Args:
        protocol: The protocol; its ``force`` population is used.
        seed: Seed of the data.
        split: Split of the data.
        indices: Trajectory indices, [N].
        iterations: Gauss-Newton steps.

    Returns:
        Solar mass AU / year^2 on planet rows, NaN elsewhere.
    """
    return implied_force(protocol, best_fit(protocol, seed, split, indices, iterations))


def best_fit(
    protocol: Protocol, seed: int, split: str, indices: npt.ArrayLike, iterations: int = 6
) -> Fit:
    """Return the best fits to whole sequences; arguments as for :func:`ceiling_force`."""
    world = protocol.systems(seed, split, indices, "force")
    # A fixed prior: the answer to one sequence must not depend on which others are asked.
    population = protocol.systems(0, "train", range(_PRIOR_SYSTEMS), "force")
    return fit(protocol, world, population=population, iterations=iterations)


def implied_force(protocol: Protocol, found: Fit) -> Array:
    """Return the magnitude of the force that a fit of all points implies, as above, [N, T]."""
    distance = np.sqrt(np.sum(found.relative**2, axis=-1))
    filled = np.full((len(distance), 1 + protocol.n_points), np.nan)
    masses = found.m1[:, None], found.m2[:, None]
    filled[:, 1::2] = laws.get(protocol.law).magnitude(distance, *masses)
    return filled


def fit(
    protocol: Protocol,
    world: Systems,
    n_seen: int | None = None,
    population: Systems | None = None,
    iterations: int = 6,
) -> Fit:
    """Fit orbits to the bin centres of the first observed points, and continue them.

    Gauss-Newton least squares over (log m1, log m2, log a, e cos M, e sin M, w + k M, x0, y0),
    started at the truth so that it cannot fail by a bad start: an upper bound, not a method. With
    k the turns of the angle per radial turn of a nearly circular orbit (1 for Newton's law), no
    parameter becomes undetermined as e goes to zero.

    Args:
        protocol: What observes.
        world: Systems of one planet each, N.
        n_seen: How many of the observed points the fit sees; None for all.
        population: Systems whose spread is the prior, where those of ``world`` are not typical.
        iterations: Gauss-Newton steps.

    Raises:
        ValueError: A system has several planets, or ``n_seen`` is not in [1, n_points].
    """
    n_seen = protocol.n_points if n_seen is None else n_seen
    if np.any(world.n_planets != 1):
        raise ValueError(f"an orbit is fitted to one planet, got {world.n_planets.max()}")
    if not 1 <= n_seen <= protocol.n_points:
        raise ValueError(f"n_seen must be in [1, {protocol.n_points}], got {n_seen}")
    tokens = protocol.observe(world)["tokens"]
    observed = protocol.tokens.decode(tokens[:, 1 : 1 + n_seen])
    when = times(world, protocol.dts, protocol.n_points, n_planets=1)
    whole = _Orbits(laws.get(protocol.law), when, protocol.n_points, world.mean_anomaly[:, 0])
    seen = dataclasses.replace(whole, times=when[:, : -(-n_seen // 2)], n_points=n_seen)
    theta = whole.parameters(world)
    typical = theta if population is None else whole.parameters(population)
    prior_mean = typical.mean(axis=0)
    # The population's own spread is the only prior; it matters where a mass is invisible.
    precision = (protocol.tokens.width**2 / 12) / typical.var(axis=0)
    for _ in range(iterations):
        points, _ = seen.observe(theta)
        residual = (observed - points).reshape(len(theta), -1)
        jacobian = seen.jacobian(theta)
        normal = jacobian.transpose(0, 2, 1) @ jacobian + np.diag(precision)
        gradient = (jacobian.transpose(0, 2, 1) @ residual[..., None])[..., 0]
        gradient += precision * (prior_mean - theta)
        step = np.linalg.solve(normal, gradient[..., None])[..., 0]
        theta = _inside(theta + np.clip(step, -0.5, 0.5))
    points, relative = whole.observe(theta)
    m1, m2 = np.exp(theta[:, :2]).T
    return Fit(m1, m2, points, relative)


@dataclass(frozen=True)
class _Orbits:
    """Two-body orbits as functions of the fitted parameters.

    Attributes:
        law: The force law.
        times: In years, [N, steps].
        n_points: Observed points per sequence.
        anomaly: True mean anomalies at time 0, [N]. A fitted one is taken in the turn around it.
    """

    law: laws.Law
    times: Array
    n_points: int
    anomaly: Array

    def advance(self, a: Array, m1: Array, m2: Array) -> Array:
        """Return the turns of the angle per radial turn of a nearly circular orbit, [N].

        The distance swings sqrt(3 + d ln F / d ln r) times per turn (Binney & Tremaine 2008,
        Galactic Dynamics, equation 3.80).
        """
        slope = a * self.law.slope(a, m1, m2) / self.law.magnitude(a, m1, m2)
        return 1 / np.sqrt(3 + slope)

    def parameters(self, world: Systems) -> Array:
        """Return the true parameters of systems, [N, 8]."""
        m1, m2, a = world.planet_mass[:, 0], world.star_mass, world.semi_major_axis[:, 0]
        e, anomaly = world.eccentricity[:, 0], world.mean_anomaly[:, 0]
        return np.stack(
            [
                np.log(m1),
                np.log(m2),
                np.log(a),
                e * np.cos(anomaly),
                e * np.sin(anomaly),
                world.periapsis[:, 0] + self.advance(a, m1, m2) * anomaly,
                *world.centre_of_mass.T,
            ],
            axis=-1,
        )

    def observe(self, theta: Array) -> tuple[Array, Array]:
        """Return the observed points [N, n_points, 2] and planet - star [N, steps, 2]."""
        m1, m2, a = np.exp(theta[:, :3]).T
        anomaly = np.arctan2(theta[:, 4], theta[:, 3])
        anomaly = self.anomaly + (anomaly - self.anomaly + PI) % TURN - PI
        periapsis = theta[:, 5] - self.advance(a, m1, m2) * anomaly
        eccentricity = np.hypot(theta[:, 3], theta[:, 4])
        relative, _ = motion.relative_orbit(
            self.law.name, a, eccentricity, periapsis, anomaly, m1, m2, self.times
        )
        planet = (m2 / (m1 + m2))[:, None, None] * relative
        both = np.stack([planet, planet - relative], axis=2) + theta[:, None, None, 6:8]
        points = both.reshape(len(theta), -1, 2)[:, : self.n_points]
        return points, relative

    def jacobian(self, theta: Array, step: float = 1e-6) -> Array:
        """Return the derivatives of the points by the parameters, [N, 2 n_points, parameters]."""
        columns = []
        for k in range(theta.shape[1]):
            shift = np.zeros(theta.shape[1])
            shift[k] = step
            above, _ = self.observe(_inside(theta + shift))
            below, _ = self.observe(_inside(theta - shift))
            columns.append((above - below).reshape(len(theta), -1) / (2 * step))
        return np.stack(columns, axis=-1)


def _inside(theta: Array, largest: float = 0.99) -> Array:
    """Keep the fitted orbit bound: shrink an eccentricity vector that left the unit disc."""
    e = np.hypot(theta[:, 3], theta[:, 4])
    shrink = np.minimum(1, largest / np.maximum(e, 1e-12))
    theta = theta.copy()
    theta[:, 3:5] *= shrink[:, None]
    return theta
