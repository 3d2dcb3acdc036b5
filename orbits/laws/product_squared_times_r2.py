"""An attraction that grows with the distance and with both masses, F = k (m1 m2)^2 r^2."""

from orbits.laws import Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

LAW = Law(
    name="product_squared_times_r2",
    expression="k*m1**2*m2**2*r**2",
    potential="k*m1**2*m2**2*r**3/3",
    # The numerical value of G, so that the force is Newton's between solar masses at 1 AU.
    parameters={"k": GRAVITATIONAL_CONSTANT},
    units={"k": "1 / (AU solar mass^3 year^2)"},
    exponents={"r": 2.0, "m1": 2.0, "m2": 2.0},
    reference="Zheng et al. (2025), NewtonBench, arXiv:2510.07172: gravity, medium, version 2",
)
