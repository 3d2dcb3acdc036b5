"""Orbits under a disturbance as functions of parameters, for the fits of :mod:`orbits.ceiling`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orbits import disturbed
from orbits.arithmetic import PI, TURN, Array
from orbits.disturbed import THIRD, Disturbance
from orbits.systems import Systems

_CENTRE = slice(6, 8)


@dataclass(frozen=True)
class DisturbedOrbits:
    """Places of bodies, with the parameters of an undisturbed fit and three of a third body.

    The observer is told the disturbance, and of which kinds the bodies are; a third body's mass,
    distance and angle are fitted, be it hidden or seen.

    Attributes:
        disturbance: Disturbance of the world.
        times: In years, [N, steps].
        n_points: Observed points per sequence.
        anomaly: True mean anomalies at time 0, [N]. A fitted one is taken in the turn around it.
        coupling: Factor of the attraction, [N]; of triples those of all pairs, [N, 3, 3].
    """

    disturbance: Disturbance
    times: Array
    n_points: int
    anomaly: Array
    coupling: Array

    @classmethod
    def of(
        cls, disturbance: Disturbance, world: Systems, times: Array, n_points: int
    ) -> DisturbedOrbits:
        """Return the orbits of systems at times [N, steps]."""
        return cls(disturbance, times, n_points, world.mean_anomaly[:, 0], world.coupling)

    def parameters(self, world: Systems) -> Array:
        """Return (ln m1, ln m2, ln a, e cos M, e sin M, w + M, x, y) of systems, [N, 8].

        A third body adds (ln m3, ln a3, M3), [N, 11].
        """
        e, anomaly = world.eccentricity[:, 0], world.mean_anomaly[:, 0]
        columns = [
            np.log(world.planet_mass[:, 0]),
            np.log(world.star_mass),
            np.log(world.semi_major_axis[:, 0]),
            e * np.cos(anomaly),
            e * np.sin(anomaly),
            world.periapsis[:, 0] + anomaly,
            *world.centre_of_mass.T,
        ]
        if self._has_third:
            columns += [
                np.log(world.planet_mass[:, THIRD]),
                np.log(world.semi_major_axis[:, THIRD]),
                world.mean_anomaly[:, THIRD],
            ]
        return np.stack(columns, axis=-1)

    def observe(self, theta: Array) -> tuple[Array, Array]:
        """Return the observed points [N, n_points, 2] and planet - star [N, steps, 2]."""
        moved = disturbed.observed(self.disturbance, self._systems(theta), self.times)
        points = moved.reshape(len(theta), -1, 2)[:, : self.n_points]
        return points, moved[:, :, 0] - moved[:, :, -1]

    def rows(self, rows: npt.NDArray) -> DisturbedOrbits:
        """Return the orbits of some rows."""
        fields = ("times", "anomaly", "coupling")
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in fields})

    def jacobian(self, theta: Array, step: float = 1e-6) -> Array:
        """Return the derivatives of the points by the parameters, [N, 2 n_points, parameters]."""
        columns = []
        for k in range(theta.shape[1]):
            shift = np.zeros(theta.shape[1])
            shift[k] = step
            if k in range(_CENTRE.start, _CENTRE.stop):
                points = np.zeros((len(theta), self.n_points, 2))
                points[..., k - _CENTRE.start] = 1
                columns.append(points)
            else:
                above, below = (self.observe(theta + sign * shift)[0] for sign in (1, -1))
                columns.append((above - below) / (2 * step))
        return np.stack([column.reshape(len(theta), -1) for column in columns], axis=-1)

    @property
    def _has_third(self) -> bool:
        return self.disturbance.hidden_body or self.disturbance.triple

    def _systems(self, theta: Array) -> Systems:
        """Return the systems of parameters."""
        bodies = 1 + self._has_third
        m1, m2, axis = np.exp(theta[:, :3]).T
        anomaly = np.arctan2(theta[:, 4], theta[:, 3])
        anomaly = self.anomaly + (anomaly - self.anomaly + PI) % TURN - PI
        world = Systems.zeros(len(theta), bodies)._replace(
            star_mass=m2, centre_of_mass=theta[:, _CENTRE], coupling=self.coupling
        )
        world.planet_mass[:, 0], world.semi_major_axis[:, 0] = m1, axis
        world.eccentricity[:, 0] = np.hypot(theta[:, 3], theta[:, 4])
        world.periapsis[:, 0], world.mean_anomaly[:, 0] = theta[:, 5] - anomaly, anomaly
        if self._has_third:
            world.planet_mass[:, THIRD], world.semi_major_axis[:, THIRD] = np.exp(theta[:, 8:10]).T
            world.mean_anomaly[:, THIRD] = theta[:, 10]
        return world
