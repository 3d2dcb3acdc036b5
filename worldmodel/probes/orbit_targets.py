"""Targets of read-outs: the true state of a planet, and its consequences under a law.

Two families tell two kinds of model apart. A Newtonian one needs the force; a Keplerian one the
shape of the orbit, which is the ellipse's semi-axes and the eccentricity vector, that is the vector
of Laplace, Runge and Lenz per G m1 m2 and reduced mass (Liu et al. 2026, arXiv:2602.06923).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from orbits import laws, motion
from orbits.laws import Law, reduced_mass
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from worldmodel.probes.quantities import READ_OUTS

Array = npt.NDArray[np.float64]

KEPLERIAN = ("semi_major", "semi_minor", "eccentricity_vector")
ELLIPSES = ("eccentricity", *KEPLERIAN)
"""Targets that exist under Newton's law alone."""


class State:
    """States under a law, and the quantities that others are made of, each [..., 1] or [..., 2].

    Args:
        law: The force law.
        state: Position (AU) and velocity (AU / year) of the planet relative to its star, planet
            mass, star mass (solar masses), [..., 6].
    """

    def __init__(self, law: Law, state: Array) -> None:
        self.law = law
        self.position, self.velocity = state[..., :2], state[..., 2:4]
        self.x, self.y, self.vx, self.vy, self.m1, self.m2 = np.split(state, 6, axis=-1)
        self.r, self.speed = np.hypot(self.x, self.y), np.hypot(self.vx, self.vy)
        self.force = law.magnitude(self.r, self.m1, self.m2)
        self.mu = GRAVITATIONAL_CONSTANT * (self.m1 + self.m2)

    @property
    def energy(self) -> Array:
        """Energy of the relative motion per reduced mass, AU^2 / year^2."""
        potential = self.law.potential_energy(self.r, self.m1, self.m2)
        return self.speed**2 / 2 + potential / reduced_mass(self.m1, self.m2)

    @property
    def eccentricity_vector(self) -> Array:
        """The eccentricity vector (Murray & Dermott 1999, Solar System Dynamics, section 2.4)."""
        inward = self.x * self.vx + self.y * self.vy
        along = self.speed**2 / self.mu - 1 / self.r
        return along * self.position - inward / self.mu * self.velocity

    @property
    def eccentricity(self) -> Array:
        """The size of the eccentricity vector."""
        return np.linalg.norm(self.eccentricity_vector, axis=-1, keepdims=True)

    @property
    def semi_major(self) -> Array:
        """The semi-major axis by the vis-viva equation, AU."""
        return 1 / (2 / self.r - self.speed**2 / self.mu)


TARGETS: Mapping[str, Callable[[State], Array]] = {
    "position": lambda s: s.position,
    "velocity": lambda s: s.velocity,
    "log_m1": lambda s: np.log(s.m1),
    "log_m2": lambda s: np.log(s.m2),
    "energy": lambda s: s.energy,
    "angular_momentum": lambda s: s.x * s.vy - s.y * s.vx,
    "eccentricity": lambda s: s.eccentricity,
    "log_force": lambda s: np.log(s.force),
    "force_vector": lambda s: -s.force * s.position / s.r,
    "semi_major": lambda s: s.semi_major,
    "semi_minor": lambda s: s.semi_major * np.sqrt(1 - s.eccentricity**2),
    "eccentricity_vector": lambda s: s.eccentricity_vector,
}
"""The quantities by the names of ``READ_OUTS``."""
assert list(TARGETS) == list(READ_OUTS)


def left_out(law: str) -> dict[str, str]:
    """Return the targets that do not exist under a law, with the reason."""
    reasons = {}
    if laws.get(law).potential is None:
        reasons["energy"] = f"law {law!r} has no closed-form potential"
    if law != motion.NEWTON:
        reasons |= dict.fromkeys(ELLIPSES, "Newton's law alone has Kepler's ellipses")
    return reasons


def targets(law: str, state: Array) -> dict[str, Array]:
    """Return the quantities to read out, by the names of ``READ_OUTS``, each [..., 1] or [..., 2].

    What :func:`left_out` names is missing.
    """
    states, missing = State(laws.get(law), state), left_out(law)
    return {name: target(states) for name, target in TARGETS.items() if name not in missing}
