"""The law behind predicted next places of two bodies.

A body's kick is its predicted next place less the straight line from its true place with its true
velocity. What is predicted should be the median of a model's distribution: an expectation moves
with every unlikely place far away.

It is well posed in the world that a model was trained in. In another, even an observer who believes
in one law and fits all of the past has a kick that holds the misfit of his orbit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from orbits import observation
from orbits.arithmetic import Array
from orbits.implied import pulls
from orbits.implied.overall import Overall, overall
from orbits.implied.pulls import Pulls
from orbits.implied.within import within, within_least_squares, within_resampled
from orbits.protocol import Protocol
from orbits.runs.statistics import Interval, studentized
from orbits.runs.statistics.bootstrap import percentiles
from orbits.systems import Systems

WILD = 0.5
"""Largest error of a place, in AU, in the share of the missed kick; larger ones count as this."""
MASSES = ("m1", "m2", "r")


class Kicks(NamedTuple):
    """Kicks in AU, each [N, K, 2]."""

    planet: Array
    star: Array


class OneStep:
    """True places, velocities and paths of N systems of one planet, at K steps.

    Args:
        protocol: Protocol of the observation; planet and star take turns.
        world: The systems.
        first: First step that is predicted, 1 or later; the last is that of the last star.
    """

    def __init__(self, protocol: Protocol, world: Systems, first: int) -> None:
        self.world, self.dt = world, np.asarray(protocol.dts)[world.dt_index]
        self.m1, self.m2 = world.planet_mass[:, 0], world.star_mass
        self.first = first
        self.rows = 1 + 2 * np.arange(first, protocol.n_points // 2)
        before = np.arange(first, protocol.n_points // 2) - 1
        at = before[:, None] + np.concatenate([[0.0], pulls.node_times()])
        relative, velocity = (
            x.reshape(len(self.dt), *at.shape, 2)
            for x in observation.relative(
                world,
                0,
                world.mean_anomaly[:, 0],
                self.dt[:, None] * at.reshape(-1),
                protocol.law,
            )
        )
        self.nodes = relative[:, :, 1:]
        straight = relative[:, :, 0] + velocity[:, :, 0] * self.dt[:, None, None]
        share = (self.m2 / (self.m1 + self.m2))[:, None, None]
        centre = world.centre_of_mass[:, None]
        self._line = Kicks(centre + share * straight, centre - (1 - share) * straight)

    def kicks(self, points: Array) -> Kicks:
        """Return the kicks behind predicted rows [N, T, 2] in AU."""
        return Kicks(
            points[:, self.rows] - self._line.planet, points[:, self.rows + 1] - self._line.star
        )

    def pulls(self, kick: Array) -> Pulls:
        """Return the pulls of kicks [N, K, 2] of planet - star, or of the planet."""
        return pulls.of_steps(kick, self.nodes, self.dt)

    def measured(self, points: Array, true: Array, n_boot: int = 200) -> dict[str, Interval]:
        """Return the laws of predicted rows [N, T, 2] and of true ones, each [value, low, high].

        Returns:
            ``exponent_within``; of planet and star ``planet_r``, ``planet_m1``, ``planet_m2``,
            ``planet_constant`` (and ``star_``), left out where there is no attraction;
            ``action_reaction``, the planet's constant over the star's; ``missed``, the root mean
            square error of both kicks over that of the kicks.
        """
        kick = self.kicks(points)
        found = {"exponent_within": self.exponent(points, n_boot)}
        laws: dict[str, Overall] = {}
        for body, own in (("planet", kick.planet), ("star", -kick.star)):
            law = overall(self.pulls(own), self.m1, self.m2, n_boot)
            if law is not None:
                laws[body] = law
                names = (f"{body}_{name}" for name in MASSES)
                found |= dict(zip(names, law.exponents, strict=True))
                found[f"{body}_constant"] = law.constant
        if len(laws) == 2:
            planet, star = laws["planet"], laws["star"]
            found["action_reaction"] = percentiles(
                planet.constant.value / star.constant.value, planet.constants / star.constants
            )
        return {**found, "missed": self.missed(points, true)}

    def exponent(self, points: Array, n_boot: int = 200) -> Interval:
        """Return the exponent of the distance along each orbit, of predicted rows [N, T, 2]."""
        return within(self._relative(points), n_boot)

    def resampled(self, points: Array, n_boot: int, seed: int) -> tuple[float, Array]:
        """Return the same, and the exponent of each resample of the sequences [n_boot]."""
        return within_resampled(self._relative(points), n_boot, seed)

    def exponent_least_squares(self, points: Array, n_boot: int = 200) -> Interval:
        """Return the same by plain least squares."""
        return within_least_squares(self._relative(points), n_boot)

    def tail(self, points: Array, true: Array) -> float:
        """Return by how much, in AU, one of a thousand predicted places is off, or more."""
        rows = np.concatenate([self.rows, self.rows + 1])
        return float(np.quantile(np.linalg.norm((points - true)[:, rows], axis=-1), 0.999))

    def _relative(self, points: Array) -> Pulls:
        kick = self.kicks(points)
        return self.pulls(kick.planet - kick.star)

    def missed(self, points: Array, true: Array) -> Interval:
        """Return the root mean square error of both kicks over that of the kicks."""
        return _missed(self.kicks(points), self.kicks(true))


def _missed(kick: Kicks, exact: Kicks) -> Interval:
    def squares(vectors: Array, most: float) -> Array:
        length = np.linalg.norm(vectors, axis=-1)
        return np.asarray(np.sum(np.minimum(length, most) ** 2, axis=-1))

    pairs = list(zip(kick, exact, strict=True))
    error = sum(squares(one - other, WILD) for one, other in pairs)
    whole = sum(squares(other, np.inf) for _, other in pairs)
    table = np.stack([error, whole], axis=-1)
    return studentized(table, lambda s: np.sqrt(s[..., 0] / s[..., 1]))
