"""An attraction by the square of the product of the masses, F = k (m1 m2)^2 / r^1.5."""

from orbits.laws import Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

LAW = Law(
    name="product_squared_over_r1_5",
    expression="k*m1**2*m2**2/r**(3/2)",
    potential="-2*k*m1**2*m2**2/sqrt(r)",
    # The numerical value of G, so that the force is Newton's between solar masses at 1 AU.
    parameters={"k": GRAVITATIONAL_CONSTANT},
    units={"k": "AU^(5/2) / (solar mass^3 year^2)"},
    exponents={"r": -1.5, "m1": 2.0, "m2": 2.0},
    reference="Zheng et al. (2025), NewtonBench, arXiv:2510.07172: gravity, medium, version 0",
)
