"""An attraction that depends on the planet's mass alone, F = k m1 / r^2.

It pulls both bodies alike, towards each other. Motion shows m1 / m2 and no mass: if both are
doubled, so is the force, and every path stays.
"""

from orbits.laws import Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

LAW = Law(
    name="m1_over_r2",
    expression="k*m1/r**2",
    potential="-k*m1/r",
    # The numerical value of G, so that the force is Newton's between solar masses at 1 AU.
    parameters={"k": GRAVITATIONAL_CONSTANT},
    units={"k": "AU^3 / year^2"},
    exponents={"r": -2.0, "m1": 1.0, "m2": 0.0},
    reference="Zheng et al. (2025), NewtonBench, arXiv:2510.07172: gravity, easy, version 1",
)
