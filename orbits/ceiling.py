"""Orbit fits to observed points: the ceiling of a protocol whose masses are visible.

An observer who knows the physics fits an orbit, of two bodies or of three, to the bin centres of a
whole sequence and computes the force from it; fitted to the first points alone, the orbit says
where the bodies go next. No model that sees the same tokens can be expected to do better.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import disturbed, laws, motion
from orbits.arithmetic import PI, TURN
from orbits.disturbed_fit import DisturbedOrbits
from orbits.elements import Elements
from orbits.observation import times
from orbits.protocol import Protocol
from orbits.systems import Systems

Array = npt.NDArray[np.float64]

_PRIOR_SYSTEMS = 500
_CONVERGED = 1e-5  # of chi squared


class Fit(NamedTuple):
    """Best-fitting orbits of N sequences.

    Attributes:
        m1: Planet masses in solar masses, [N].
        m2: Star masses in solar masses, [N].
        points: Fitted places of the bodies in AU, in turn as observed, [N, n_points, 2].
        relative: First planet - star in AU at every time step, [N, steps, 2].
        converged: Whether the fit ended at a minimum, [N]: another step would lower its chi
            squared by less than a hundred-thousandth.
        log_volume: Logarithm of the prior's density at the fit times the volume of the posterior
            about it (Laplace), up to a constant that all laws share, [N]. None unless a law is
            named that is believed.
        theta: The fitted parameters of :func:`fit`, [N, 8]; None likewise.
    """

    m1: Array
    m2: Array
    points: Array
    relative: Array
    converged: npt.NDArray[np.bool_]
    log_volume: Array | None = None
    theta: Array | None = None


def best_fit(
    protocol: Protocol, seed: int, split: str, indices: npt.ArrayLike, iterations: int = 300
) -> Fit:
    """Fit orbits to whole sequences of the population ``force``; as :func:`fit`."""
    world = protocol.systems(seed, split, indices, "force")
    return fit(protocol, world, population=typical_systems(protocol), iterations=iterations)


def typical_systems(protocol: Protocol) -> Systems:
    """Return the systems whose spread is the prior of every fit under a protocol.

    They are fixed: the answer to one sequence must not depend on which others are asked. Under a
    shift they are those of the unshifted protocol: an observer knows the population that a model
    was trained on, and not that it is asked about another.
    """
    population = protocol.unshifted.populations[-1]
    return protocol.unshifted.systems(0, "train", range(_PRIOR_SYSTEMS), population)


def implied_force(protocol: Protocol, found: Fit) -> Array:
    """Return the force's magnitude on planet rows, NaN elsewhere, [N, 1 + n_points]."""
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
    iterations: int = 300,
    believed: str | None = None,
    start: Array | None = None,
    coupling: Array | None = None,
) -> Fit:
    """Fit orbits to the bin centres of the first observed points, and continue them.

    Least squares by Levenberg and Marquardt's method over (log m1, log m2, log a, e cos M,
    e sin M, w + k M, x0, y0), started at the truth so that it cannot fail by a bad start: an upper
    bound, not a method. No fit ends worse than its start. With k the turns of the angle per radial
    turn of a nearly circular orbit (1 for Newton's law), no parameter becomes undetermined as e
    goes to zero. Under a disturbance, :mod:`orbits.disturbed_fit` says what else is fitted.

    Args:
        protocol: What observes.
        world: Systems of one planet each, or triples, N.
        n_seen: How many of the observed points the fit sees; None for all.
        population: Systems whose spread is the prior, where those of ``world`` are not typical.
        iterations: Most steps of the method; a fit that has converged takes no more.
        believed: The law of the orbits that are fitted, by an observer who holds it; None for that
            of the world. Under another one there is no true start: it is the orbit that turns as
            fast and has the true angle and radial phase in the middle of what is seen. Of a
            disturbance such an observer knows nothing.
        start: Parameters to start at in place of the truth, [N, 8]: those of a like law's fit.
        coupling: Factors of the pulls between the bodies of triples, [N, 3, 3], by an observer who
            holds them in place of the true ones; of ones, he believes in Newton's law. Such a fit
            starts at masses that pull as much.

    Raises:
        ValueError: A system has several planets and is no triple, ``n_seen`` is not in [1,
            n_points], the believed law does not bind an orbit, or a law is believed of triples, or
            a coupling of others.
    """
    n_seen = protocol.n_points if n_seen is None else n_seen
    is_triple = protocol.disturbance is not None and protocol.disturbance.triple
    bodies = 3 if is_triple else 2
    if is_triple and believed is not None:
        raise ValueError("of triples another law is not believed; give coupling")
    if coupling is not None and not is_triple:
        raise ValueError(f"protocol {protocol.name!r} has no triples whose coupling is believed")
    if np.any(world.n_planets != bodies - 1):
        raise ValueError(f"an orbit is fitted to one planet, got {world.n_planets.max()}")
    if not 1 <= n_seen <= protocol.n_points:
        raise ValueError(f"n_seen must be in [1, {protocol.n_points}], got {n_seen}")
    tokens = protocol.observe(world)["tokens"]
    observed = protocol.tokens.decode(tokens[:, 1 : 1 + n_seen])
    when = times(world, protocol.dts, protocol.n_points, n_planets=bodies - 1)
    law, alike = laws.get(believed or protocol.law), world
    if coupling is not None:
        alike = disturbed.pulling_alike(world, coupling)
    if law.name != protocol.law:
        alike = _turning_alike(laws.get(protocol.law), law, world, when[:, n_seen // 4])
    whole: _Orbits | DisturbedOrbits
    if protocol.disturbance is None or believed is not None:
        whole = _Orbits(law, when, protocol.n_points, alike.mean_anomaly[:, 0])
    else:
        whole = DisturbedOrbits.of(protocol.disturbance, alike, when, protocol.n_points)
    seen = dataclasses.replace(whole, times=when[:, : -(-n_seen // bodies)], n_points=n_seen)
    theta = whole.parameters(alike)
    typical = whole.parameters(world if population is None else population)
    noise = protocol.tokens.width**2 / 12
    # The population's own spread is the only prior; it matters where a mass is invisible.
    prior = typical.mean(axis=0), typical.var(axis=0) / noise
    if start is not None:  # a like law need not bind the orbit that another one's fit ended at
        theta = np.where(np.isfinite(seen.observe(start)[0][:, 0, :1]), start, theta)
    theta, converged = _minimum(seen, observed, theta, *prior, noise, iterations)
    points, relative = whole.observe(theta)
    m1, m2 = np.exp(theta[:, :2]).T
    if believed is None:
        return Fit(m1, m2, points, relative, converged)
    volume = _log_volume(seen, theta, *prior, noise)
    return Fit(m1, m2, points, relative, converged, volume, theta)


def _log_volume(
    orbits: _Orbits | DisturbedOrbits,
    theta: Array,
    prior_mean: Array,
    prior_variance: Array,
    noise: float,
) -> Array:
    """Return the logarithm of prior density times posterior volume, up to a constant, [N]."""
    penalty = np.sum((prior_mean - theta) ** 2 / prior_variance, axis=1) / noise
    jacobian = orbits.jacobian(theta)
    curvature = jacobian.transpose(0, 2, 1) @ jacobian + np.diag(1 / prior_variance)
    volume = np.linalg.slogdet(curvature)[1] + np.sum(np.log(prior_variance))
    return np.asarray(-(penalty + volume) / 2)


def _minimum(
    orbits: _Orbits | DisturbedOrbits,
    observed: Array,
    theta: Array,
    prior_mean: Array,
    prior_variance: Array,
    noise: float,
    iterations: int,
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the parameters [N, 8] that fit best, and whether they are at a minimum [N].

    A step that would raise the cost, or leave the bound orbits, is not taken and is damped ten
    times more (Marquardt 1963); undamped, the method is Gauss and Newton's. Variances are in units
    of the noise.
    """
    theta, damping = theta.copy(), np.zeros(len(theta))
    converged = np.zeros(len(theta), np.bool_)
    left = np.arange(len(theta))

    def cost(some: _Orbits | DisturbedOrbits, of: Array, seen: Array) -> tuple[Array, Array]:
        points, _ = some.observe(of)
        residual = (seen - points).reshape(len(of), -1)
        prior = np.sum((prior_mean - of) ** 2 / prior_variance, axis=1)
        return residual, np.sum(residual**2, axis=1) + prior

    for _ in range(iterations):
        if not left.size:
            break
        some, seen, now = orbits.rows(left), observed[left], theta[left]
        residual, before = cost(some, now, seen)
        jacobian = some.jacobian(now)
        normal = jacobian.transpose(0, 2, 1) @ jacobian + np.diag(1 / prior_variance)
        gradient = (jacobian.transpose(0, 2, 1) @ residual[..., None])[..., 0]
        gradient += (prior_mean - now) / prior_variance
        promised = np.sum(gradient * _solve(normal, gradient), axis=1)
        damped = normal * (1 + damping[left, None, None] * np.eye(normal.shape[-1]))
        then = _inside(now + np.clip(_solve(damped, gradient), -0.5, 0.5))
        _, after = cost(some, then, seen)
        better = after <= before
        theta[left[better]] = then[better]
        converged[left] = promised < _CONVERGED * noise
        damping[left] = np.where(
            better, np.where(damping[left] > 1e-3, damping[left] / 10, 0), damping[left] * 10 + 1e-3
        )
        left = left[~converged[left]]
    return theta, converged


def _solve(matrix: Array, vector: Array) -> Array:
    return np.asarray(np.linalg.solve(matrix, vector[..., None])[..., 0])


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
                world.periapsis[:, 0] + _advance(self.law, a, m1, m2) * anomaly,
                *world.centre_of_mass.T,
            ],
            axis=-1,
        )

    def observe(self, theta: Array) -> tuple[Array, Array]:
        """Return the observed points [N, n_points, 2] and planet - star [N, steps, 2].

        Orbits that the law does not bind are NaN; so are those of a size at which it has no stable
        circular orbit, where parameters have no meaning.
        """
        m1, m2, a = np.exp(theta[:, :3]).T
        anomaly = np.arctan2(theta[:, 4], theta[:, 3])
        anomaly = self.anomaly + (anomaly - self.anomaly + PI) % TURN - PI
        periapsis = theta[:, 5] - _advance(self.law, a, m1, m2) * anomaly
        eccentricity = np.hypot(theta[:, 3], theta[:, 4])
        orbits = Elements(a, eccentricity, np.nan_to_num(periapsis), anomaly, m1, m2)
        relative, _ = motion.relative_orbit(self.law.name, orbits, self.times, refuse=False)
        relative[np.isnan(periapsis)] = np.nan
        planet = (m2 / (m1 + m2))[:, None, None] * relative
        both = np.stack([planet, planet - relative], axis=2) + theta[:, None, None, 6:8]
        points = both.reshape(len(theta), -1, 2)[:, : self.n_points]
        return points, relative

    def rows(self, rows: npt.NDArray) -> _Orbits:
        """Return the orbits of some rows."""
        return dataclasses.replace(self, times=self.times[rows], anomaly=self.anomaly[rows])

    def jacobian(self, theta: Array, step: float = 1e-6) -> Array:
        """Return the derivatives of the points by the parameters, [N, 2 n_points, parameters]."""
        columns = []
        points, _ = self.observe(theta)
        for k in range(5):
            shift = np.zeros(theta.shape[1])
            shift[k] = step
            above, _ = self.observe(_inside(theta + shift))
            below, _ = self.observe(_inside(theta - shift))
            # Beside the last bound orbit there is a difference to one side alone, or to none.
            above = np.where(np.isnan(above), 2 * points - below, above)
            below = np.where(np.isnan(below), 2 * points - above, below)
            columns.append(np.nan_to_num((above - below) / (2 * step)))
        x, y = np.moveaxis(points - theta[:, None, 6:8], -1, 0)
        columns.append(np.stack([-y, x], axis=-1))  # the angle turns all points about the centre
        columns += [np.broadcast_to(axis, points.shape) for axis in np.eye(2)]
        return np.stack([column.reshape(len(theta), -1) for column in columns], axis=-1)


def _advance(law: laws.Law, a: Array, m1: Array, m2: Array) -> Array:
    """Return the turns of the angle per radial turn of a nearly circular orbit, [N].

    The distance swings sqrt(3 + d ln F / d ln r) times per turn (Binney & Tremaine 2008, Galactic
    Dynamics, equation 3.80); NaN where no such orbit is stable.
    """
    square = 3 + a * law.slope(a, m1, m2) / law.magnitude(a, m1, m2)
    return 1 / np.sqrt(np.where(square > 0, square, np.nan))


def _turning_alike(true: laws.Law, other: laws.Law, world: Systems, middle: Array) -> Systems:
    """Return systems that under another law turn as fast, and are alike at a time in years [N].

    Periods are taken to go as 1 / sqrt(total mass), as under all laws F ~ m1 m2; under another one
    the start is worse.
    """
    orbit = world.orbits(0)
    a, e, m1, m2 = (np.asarray(x) for x in (orbit[0], orbit[1], orbit.m1, orbit.m2))
    period, other_period = (motion.period(law.name, a, e, m1, m2) for law in (true, other))
    turns, other_turns = (_advance(law, a, m1, m2) for law in (true, other))
    alike = period * other_turns / turns  # the radial period at which the angle goes as fast
    heavier = ((other_period / alike) ** 2)[:, None]
    phase = world.mean_anomaly[:, 0] + TURN * middle / period
    angle = world.periapsis[:, 0] + turns * phase
    return world._replace(
        star_mass=world.star_mass * heavier[:, 0],
        planet_mass=world.planet_mass * heavier,
        mean_anomaly=(phase - TURN * middle / alike)[:, None],
        periapsis=(angle - other_turns * phase)[:, None],
    )


def _inside(theta: Array, largest: float = 0.99) -> Array:
    """Return parameters with the eccentricity vector shrunk into the unit disc."""
    e = np.hypot(theta[:, 3], theta[:, 4])
    shrink = np.minimum(1, largest / np.maximum(e, 1e-12))
    theta = theta.copy()
    theta[:, 3:5] *= shrink[:, None]
    return theta
