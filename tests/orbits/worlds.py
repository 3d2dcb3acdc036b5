"""Every protocol with each of its populations, and which of them the quick tier takes."""

from orbits import protocols
from tests.tiers import corners

WORLDS = [(name, each) for name in protocols.names() for each in protocols.get(name).populations]
"""Names of protocols and of their populations."""
TIERED = corners(WORLDS, *(world for world in WORLDS if protocols.get(world[0]).is_two_body))
"""The same; those whose integrators take seconds to compile are marked ``full``."""
