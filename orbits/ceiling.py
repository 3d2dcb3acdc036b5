"""The ceiling of a protocol: what its observations allow at best.

An observer who knows the physics fits a two-body orbit to the bin centres of a whole sequence
and computes the force from it. No model that sees the same tokens can be expected to do better;
causal models, which see only the past, have less to go on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orbits import kepler
from orbits.laws import get as get_law
from orbits.protocols import Protocol

Array = npt.NDArray[np.float64]


def ceiling_force(
    protocol: Protocol, seed: int, split: str, indices: npt.ArrayLike, iterations: int = 6
) -> Array:
    """Return the magnitude of the force that the best orbit fit implies, [N, T].

    Gauss-Newton least squares over (log m1, log m2, log a, e cos w, e sin w, w + M, x0, y0),
    started at the truth so that it cannot fail by a bad start: an upper bound, not a method.

    Args:
        protocol: The protocol; its ``force`` population is used.
        seed: Seed of the data.
        split: Split of the data.
        indices: Trajectory indices, [N].
        iterations: Gauss-Newton steps.

    Returns:
        Solar mass AU / year^2 on planet rows, NaN elsewhere.
    """
    world = protocol.systems(seed, split, indices, "force")
    batch = protocol.batch(seed, split, indices, "force")
    observed = protocol.tokens.decode(batch["tokens"][:, 1:])
    times: Array = batch["dt"][:, None] * np.arange(-(-protocol.n_points // 2))
    e, w = world.eccentricity[:, 0], world.periapsis[:, 0]
    theta = np.stack(
        [
            np.log(world.planet_mass[:, 0]),
            np.log(world.star_mass),
            np.log(world.semi_major_axis[:, 0]),
            e * np.cos(w),
            e * np.sin(w),
            w + world.mean_anomaly[:, 0],
            *world.centre_of_mass.T,
        ],
        axis=-1,
    )
    prior_mean = theta.mean(axis=0)
    # The population's own spread is the only prior; it matters where a mass is invisible.
    precision = (protocol.tokens.width**2 / 12) / theta.var(axis=0)
    for _ in range(iterations):
        points, _ = _model(theta, times, protocol.n_points)
        residual = (observed - points).reshape(len(theta), -1)
        jacobian = _jacobian(theta, times, protocol.n_points)
        normal = jacobian.transpose(0, 2, 1) @ jacobian + np.diag(precision)
        gradient = (jacobian.transpose(0, 2, 1) @ residual[..., None])[..., 0]
        gradient += precision * (prior_mean - theta)
        step = np.linalg.solve(normal, gradient[..., None])[..., 0]
        theta = _inside(theta + np.clip(step, -0.5, 0.5))
    _, distance = _model(theta, times, protocol.n_points)
    magnitude = get_law(protocol.law).magnitude(
        distance, np.exp(theta[:, :1]), np.exp(theta[:, 1:2])
    )
    filled = np.full((len(theta), 1 + protocol.n_points), np.nan)
    filled[:, 1::2] = magnitude
    return filled


def _model(theta: Array, times: Array, n_points: int) -> tuple[Array, Array]:
    """Return the observed points [N, n_points, 2] and the planet's distance [N, steps]."""
    m1, m2, a = np.exp(theta[:, 0]), np.exp(theta[:, 1]), np.exp(theta[:, 2])
    eccentricity = np.hypot(theta[:, 3], theta[:, 4])
    periapsis = np.arctan2(theta[:, 4], theta[:, 3])
    relative, _ = kepler.relative_orbit(
        a, eccentricity, periapsis, theta[:, 5] - periapsis, m1 + m2, times
    )
    planet = (m2 / (m1 + m2))[:, None, None] * relative
    both = np.stack([planet, planet - relative], axis=2) + theta[:, None, None, 6:8]
    points = both.reshape(len(theta), -1, 2)[:, :n_points]
    return points, np.sqrt(np.sum(relative**2, axis=-1))


def _jacobian(theta: Array, times: Array, n_points: int, step: float = 1e-6) -> Array:
    columns = []
    for k in range(theta.shape[1]):
        shift = np.zeros(theta.shape[1])
        shift[k] = step
        above, _ = _model(_inside(theta + shift), times, n_points)
        below, _ = _model(_inside(theta - shift), times, n_points)
        columns.append((above - below).reshape(len(theta), -1) / (2 * step))
    return np.stack(columns, axis=-1)


def _inside(theta: Array, largest: float = 0.99) -> Array:
    """Keep the fitted orbit bound: shrink an eccentricity vector that left the unit disc."""
    e = np.hypot(theta[:, 3], theta[:, 4])
    shrink = np.minimum(1, largest / np.maximum(e, 1e-12))
    theta = theta.copy()
    theta[:, 3:5] *= shrink[:, None]
    return theta
