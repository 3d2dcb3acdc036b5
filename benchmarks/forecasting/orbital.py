"""The suite's own series: a telescope's observations of a planet, under a known law.

Both are observed with noise, and with gaps as of nights and bad weather; what the law gives
without noise is returned beside it. Steps are 24 an orbit of the inner planet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from orbits import kepler
from orbits.arithmetic import TURN

Array = npt.NDArray[np.float64]
LENGTH, PER_ORBIT = 4000, 24
NOISE = 0.1
"""Standard deviation of the noise over that of the signal."""
GAP, EVERY = 6, 60
"""Steps of a gap, and steps that have one gap somewhere."""


def radial_velocity() -> tuple[Array, Array]:
    """Return a star's velocity along the line of sight, AU / year, and that of the law, [T, 1].

    Two planets that do not disturb one another, e = 0.4 and 0.2, a period ratio of 2.83.
    """
    pulls = np.zeros(LENGTH)
    for axis, eccentricity, periapsis, mass in ((1.0, 0.4, 1.0, 1e-3), (2.0, 0.2, 2.5, 1.2e-3)):
        _, velocity = _orbit(axis, eccentricity, periapsis)
        pulls -= mass * velocity[:, 1]
    return _observed(pulls[:, None], seed=1)


def light_curve() -> tuple[Array, Array]:
    """Return a star's relative light and that of the law, [T, 1].

    A planet (e = 0.3) takes 1% while it stands before the star; two spots turn with it in 0.83 of
    the orbit's period.
    """
    position, _ = _orbit(1.0, 0.3, 0.5)
    in_front = (position[:, 1] > 0) & (np.abs(position[:, 0]) < 0.25)
    phase = TURN * np.arange(LENGTH) / (0.83 * PER_ORBIT)
    spots = 0.003 * np.sin(phase) + 0.0015 * np.sin(2 * phase + 1.0)
    return _observed((1.0 - 0.01 * in_front + spots)[:, None], seed=2)


def _orbit(axis: float, eccentricity: float, periapsis: float) -> tuple[Array, Array]:
    """Return position and velocity of a planet around one solar mass, [T, 2]."""
    times = np.arange(LENGTH) / PER_ORBIT * float(kepler.period(1.0, 1.0))
    position, velocity = kepler.relative_orbit(
        [axis], [eccentricity], [periapsis], [0.0], [1.0], times[None]
    )
    return position[0], velocity[0]


def _observed(signal: Array, seed: int) -> tuple[Array, Array]:
    """Return the signal with noise and gaps, and as it is."""
    draw = np.random.default_rng(seed)
    seen = signal + NOISE * signal.std() * draw.normal(size=signal.shape)
    for block in range(0, LENGTH, EVERY):
        start = block + draw.integers(EVERY - GAP)
        seen[start : start + GAP] = np.nan
    return seen, signal


SERIES: Mapping[str, Callable[[], tuple[Array, Array]]] = {
    "radial_velocity": radial_velocity,
    "light_curve": light_curve,
}
"""Each series by its name."""
