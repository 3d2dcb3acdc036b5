"""An observer that carries the law of another world: it infers the mass from motion by that law.

The control of models that were trained elsewhere. Both masses' shares, the places and the true
acceleration are known to it; only its law is another one. So whatever it gets right, a model that
carries that law gets right too: R2 near 1 and mass exponents of 1 are no evidence of the law of
the world that is asked about.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from orbits import laws
from orbits.laws import Law, reduced_mass


def infers_mass(law: str) -> bool:
    """Tell whether motion under a law gives the total mass in closed form.

    So it is where F grows as a power of both masses together, other than the first.
    """
    carried = laws.get(law)
    return carried.mass_degree is not None and carried.shows_masses


def observed_force(batch: dict[str, Tensor], law: Law, believed: Law, past: bool) -> Tensor:
    """Return the force that an observer of another law expects, [B, T], solar mass AU / year^2.

    Its total mass M is that which, under the believed law, gives the true relative acceleration;
    its force is the believed law's between the shares of M. Under ``believed = law`` that is the
    true force.

    Args:
        batch: Labelled sequences; NaN in ``state`` [B, T, 6] where the planet is not observed.
        law: The law of the world.
        believed: The observer's law, with :func:`infers_mass`.
        past: Average M over all observations up to now; else take that of the moment.
    """
    state = batch["state"].double().numpy()
    seen = np.isfinite(state[0, :, 0])
    r, m1, m2 = (
        np.linalg.norm(state[:, seen, :2], axis=-1),
        *np.moveaxis(state[:, seen, 4:], -1, 0),
    )
    share1, share2 = m1 / (m1 + m2), m2 / (m1 + m2)
    degree = believed.mass_degree
    assert degree is not None
    unit = believed.magnitude(r, share1, share2)  # the force at M = 1, and it grows as M^degree
    mass = law.relative_acceleration(r, m1, m2) * reduced_mass(share1, share2) / unit
    mass **= 1 / (degree - 1)
    if past:
        mass = np.cumsum(mass, axis=1) / np.arange(1, 1 + mass.shape[1])
    force = np.full(state.shape[:2], np.nan)
    force[:, seen] = unit * mass**degree
    return torch.from_numpy(force)
