"""Samplers of binaries whose two masses can both be read from what is observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orbits import inverse_cdf, motion
from orbits.arithmetic import TURN, Array, exp, shared
from orbits.inverse_cdf import NORMAL, quantile
from orbits.philox import uniforms
from orbits.shifts import ELEMENTS
from orbits.systems import Systems

POINTS_PER_TURN = 12.0
"""Least samples per period, where they are not drawn."""
CORNER = {"planet_mass": 0.4, "eccentricity": 0.4}
"""Bounds of which no system of ``without_corner`` exceeds both at once."""
WIDE = {"semi_major_axis": 1.6}
"""The bound that no system of ``without_wide`` exceeds, in AU."""

_LN_4, _LN_40 = 1.3862943611198906, 3.6888794541139363


@shared
def is_well_sampled(dt, period, points=POINTS_PER_TURN):
    """Tell whether a time step samples a period at least so many times."""
    return dt * points <= period


@shared
def drawn_points(u):
    """Return the least samples per period where they are drawn, log-uniform in [12, 48]."""
    return POINTS_PER_TURN * exp(_LN_4 * u)


@shared
def binary(u0, u1, u2, u3):
    """Return planet mass, star mass, axis and eccentricity of a binary."""
    return 0.05 * exp(_LN_40 * u0), 0.1 * exp(_LN_40 * u1), 0.5 * exp(_LN_4 * u2), 0.6 * u3


@dataclass(frozen=True)
class Binaries:
    """Sampler of binaries.

    Planet mass log-uniform in [0.05, 2] and star mass log-uniform in [0.1, 4] solar masses (1.6
    decades each, so that a mass cannot be mistaken for its logarithm), semi-major axis
    log-uniform in [0.5, 2] AU, eccentricity uniform in [0, 0.6], angles uniform, centre of mass
    normal with 0.1 AU. The time step is the coarsest of the protocol's that samples a period
    often enough, as an observer would choose it.

    Attributes:
        draws_points: Draw the least samples per period, log-uniform in [12, 48] and independent
            of all else. Without, they are 12, and the step tells the period.
        period: What is sampled often enough, one of the periods of :mod:`orbits.motion`. Laws
            differ in how often the distance swings in a turn of the angle, so a step that is
            chosen by the period of the distance shows a sampling rate that tells the law; one
            that is chosen by the angle's does not. Newton's law has one period of both.
        left_out: Elements and a value each. Draw masses, axis and eccentricity of the binaries
            above all of them, such as :data:`CORNER`, again, with draws of their own, until they
            are outside. All others keep their bits.
    """

    draws_points: bool = False
    period: Callable[..., Array] = motion.period
    left_out: tuple[tuple[str, float], ...] = ()

    def __call__(
        self,
        seed: int,
        stream: int,
        indices: npt.ArrayLike,
        dts: tuple[float, ...],
        max_planets: int = 1,
        law: str = motion.NEWTON,
    ) -> Systems:
        """Return the systems of some trajectory indices.

        Args:
            seed: Seed of the data, 64 bits.
            stream: Number of the random stream, see :func:`orbits.systems.stream`.
            indices: Trajectory indices, [N].
            dts: Time steps to choose from in years, ascending.
            max_planets: 1; samplers of other systems take more.
            law: The force law.

        Raises:
            ValueError: The seed or an index is impossible, or the law does not bind an orbit.
        """
        u = self._draws(seed, stream, np.asarray(indices).reshape(-1))
        planet, star, axis, eccentricity = binary(u[0], u[1], u[2], u[3])
        centre = quantile(inverse_cdf.load(), NORMAL, np.stack([u[6], u[7]], axis=-1))
        world = Systems.zeros(len(star), 1)._replace(
            star_mass=star,
            planet_mass=planet[:, None],
            semi_major_axis=axis[:, None],
            eccentricity=eccentricity[:, None],
            periapsis=(TURN * u[4])[:, None],
            mean_anomaly=(TURN * u[5])[:, None],
            centre_of_mass=0.1 * centre,
        )
        points = self.points(seed, stream, indices)
        return world._replace(dt_index=self.step(world, points, dts, law))

    def points(self, seed: int, stream: int, indices: npt.ArrayLike) -> Array:
        """Return the least samples per period of some systems, [N]."""
        if not self.draws_points:
            return np.full(np.size(indices), POINTS_PER_TURN)
        return drawn_points(np.ascontiguousarray(uniforms(seed, stream, indices, 9)[:, 8]))

    def step(
        self, world: Systems, points: npt.ArrayLike, dts: tuple[float, ...], law: str
    ) -> npt.NDArray[np.int64]:
        """Return the number of the time step that is chosen for each of some systems, [N].

        Args:
            world: N systems of one planet.
            points: Least samples per period, [N] or one for all.
            dts: Time steps to choose from in years, ascending.
            law: The force law.

        Raises:
            ValueError: The law does not bind an orbit.
        """
        orbit = world.orbits(0)
        shape = (np.asarray(x) for x in (orbit.semi_major_axis, orbit.eccentricity))
        masses = (np.asarray(x) for x in (orbit.m1, orbit.m2))
        return coarsest(self.period(law, *shape, *masses), points, dts)

    def leaves_out(self, u: Array) -> npt.NDArray[np.bool_]:
        """Tell which draws [4 or more, N] are of a binary that is left out, [N]."""
        if not self.left_out:
            return np.zeros(u.shape[1], bool)
        drawn = dict(zip(ELEMENTS, binary(u[0], u[1], u[2], u[3]), strict=True))
        return np.all([drawn[name] > bound for name, bound in self.left_out], axis=0)

    def _draws(self, seed: int, stream: int, indices: npt.NDArray) -> Array:
        """Return the uniform numbers of some systems, [8, N]."""
        u, end = np.ascontiguousarray(uniforms(seed, stream, indices, 8).T), 8
        left = np.flatnonzero(self.leaves_out(u))
        while left.size:
            end += 4
            u[:4, left] = uniforms(seed, stream, indices[left], end)[:, end - 4 :].T
            left = left[self.leaves_out(u[:, left])]
        return u


SAMPLERS = {
    "identifiable": Binaries(),
    "free_step": Binaries(draws_points=True),
    "neutral_step": Binaries(period=motion.angular_period),
    "without_corner": Binaries(left_out=tuple(CORNER.items())),
    "without_wide": Binaries(left_out=tuple(WIDE.items())),
}


def coarsest(
    periods: Array, points: npt.ArrayLike, dts: tuple[float, ...]
) -> npt.NDArray[np.int64]:
    """Return the number of the coarsest of ``dts`` that gives ``points`` per period, [N].

    Where none does, it is the finest.
    """
    fine_enough = is_well_sampled(
        np.asarray(dts)[None], periods[:, None], np.asarray(points)[..., None]
    )
    return np.maximum(fine_enough.sum(axis=1) - 1, 0)
