"""Solar System as evaluation sequences: all planets in one, and each with the Sun alone.

In the ``paper`` protocol they are those of Vafa et al. (2025): angles and phases by default_rng(0),
so that the eight two-body sequences share one angle and one phase, and half a year between points,
in which Mercury goes round twice. In the others the planets stand where they stood at J2000, and
the time step is the longest of the protocol that aliases no orbit of the sequence.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from orbits import motion
from orbits.arithmetic import TURN
from orbits.labels import few_rows
from orbits.protocol import Protocol
from orbits.systems import SAMPLES_PER_ORBIT, Systems, is_aliased

PLANETS = ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune")
# As in Vafa et al. (2025): solar masses, AU.
MASS = np.array([1.652e-7, 2.447e-6, 3.003e-6, 3.213e-7, 9.544e-4, 2.857e-4, 4.354e-5, 5.165e-5])
SEMI_MAJOR_AXIS = np.array([0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.189, 30.069])
ECCENTRICITY = np.array([0.205, 0.007, 0.017, 0.093, 0.048, 0.054, 0.047, 0.009])
# Longitude of perihelion and mean longitude at J2000 in degrees: Standish & Williams, "Keplerian
# Elements for Approximate Positions of the Major Planets" (JPL), table 1.
PERIHELION = np.array([77.458, 131.602, 102.938, 336.056, 14.728, 92.599, 170.954, 44.965])
MEAN_LONGITUDE = np.array([252.250, 181.979, 100.465, 355.447, 34.396, 49.954, 313.238, 304.880])

_JUPITER = PLANETS.index("Jupiter")
_DEGREE = TURN / 360
_PUBLISHED_STEPS = 1000  # among them the resting Sun's place is drawn
_VECTOR_LABELS = 10


def single_sequence(protocol: Protocol, dt: float | None = None) -> dict[str, npt.NDArray]:
    """Return the eight planets and the Sun at rest, N = 1: see :meth:`Protocol.observe`.

    Args:
        protocol: Protocol of the observation; its box must hold the orbits.
        dt: One of the protocol's time steps, instead of the chosen one.

    Warns:
        UserWarning: ``dt`` samples a planet less than four times per orbit.

    Raises:
        ValueError: The box is too small, or there is no such time step.

    Warns:
        UserWarning: ``dt`` samples a planet less than four times per orbit.
    """
    return _observed(protocol, np.arange(8)[None], dt)


def two_body(protocol: Protocol, dt: float | None = None) -> dict[str, npt.NDArray]:
    """Return each planet with the Sun, N = 8 and labelled; the rest as :func:`single_sequence`."""
    return _observed(protocol, np.arange(8)[:, None], dt)


def force_mask(n_points: int = 999) -> npt.NDArray[np.bool_]:
    """Return the published mask of :func:`two_body`: ten open rows each, [8, 1 + n_points]."""
    mask = np.zeros((len(PLANETS), 1 + n_points), np.bool_)
    rows = few_rows(np.arange(1, 1 + n_points, 2), _VECTOR_LABELS, len(PLANETS))
    np.put_along_axis(mask, rows, True, axis=1)
    return mask


def _observed(
    protocol: Protocol, planets: npt.NDArray[np.int64], dt: float | None
) -> dict[str, npt.NDArray]:
    """Observe systems of some planets, numbers in [N, P]."""
    aphelia = SEMI_MAJOR_AXIS * (1 + ECCENTRICITY)
    outside = aphelia > min(protocol.high, -protocol.low)
    if np.any(outside):
        raise ValueError(
            f"{PLANETS[outside.argmax()]} leaves the box of protocol {protocol.name!r}, "
            f"{protocol.low:g} to {protocol.high:g} AU"
        )
    n, together = planets.shape
    sun = np.ones(len(PLANETS))
    periods = motion.period(protocol.law, SEMI_MAJOR_AXIS, ECCENTRICITY, MASS, sun)[planets]
    dt_index = _time_steps(protocol, planets, periods, dt)
    pinned, elapsed = _JUPITER if together > 1 else 0, np.zeros(n)
    if protocol.as_published:
        draws = np.random.default_rng(0)
        turns = np.broadcast_to(draws.random(together), (n, together))
        # As in orbits.paper, the published angle is that of the Sun as seen from the planet.
        periapsis, anomaly = TURN * (turns + 0.5), TURN * turns
        if together > 1:
            pinned, step = int(draws.integers(together)), int(draws.integers(_PUBLISHED_STEPS))
            elapsed = np.asarray(protocol.dts)[dt_index] * step / periods[:, pinned]
    else:
        periapsis = _DEGREE * PERIHELION[planets]
        anomaly = _DEGREE * (MEAN_LONGITUDE - PERIHELION)[planets]
    world = Systems(
        star_mass=np.ones(n),
        planet_mass=MASS[planets],
        semi_major_axis=SEMI_MAJOR_AXIS[planets],
        eccentricity=ECCENTRICITY[planets],
        periapsis=periapsis,
        mean_anomaly=anomaly,
        n_planets=np.full(n, together),
        centre_of_mass=np.zeros((n, 2)),
        dt_index=dt_index,
        pinned_planet=np.full(n, pinned),
        pinned_anomaly=anomaly[:, pinned] + TURN * elapsed,
        coupling=np.ones(n),
    )
    return protocol.observe(world, labelled=together == 1)


def _time_steps(
    protocol: Protocol,
    planets: npt.NDArray[np.int64],
    periods: npt.NDArray[np.float64],
    dt: float | None,
) -> npt.NDArray[np.int64]:
    """Return the index of each sequence's time step, [N]; ``periods`` are those of ``planets``."""
    n, together = planets.shape
    aliased = is_aliased(np.asarray(protocol.dts)[:, None, None], periods)
    if dt is None and protocol.as_published:
        return np.full(n, 0 if together > 1 else 1)
    if dt is None:
        return np.maximum(np.sum(~aliased.any(axis=2), axis=0) - 1, 0)
    given = np.flatnonzero(np.isclose(protocol.dts, dt, rtol=1e-9, atol=0))
    if not len(given):
        choices = ", ".join(f"{step:g}" for step in protocol.dts)
        raise ValueError(
            f"dt must be a time step of protocol {protocol.name!r} ({choices}), got {dt}"
        )
    for planet in planets[aliased[given[0]]]:
        warnings.warn(
            f"dt {dt} aliases {PLANETS[planet]}: fewer than {SAMPLES_PER_ORBIT} points per orbit",
            stacklevel=4,
        )
    return np.repeat(given, n)
