"""An attraction by a power of the planet's mass alone, F = k m1^1.3 / r^2.6."""

from orbits.laws import Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

LAW = Law(
    name="m1_1_3_over_r2_6",
    expression="k*m1**(13/10)/r**(13/5)",
    potential="-5*k*m1**(13/10)/(8*r**(8/5))",
    # The numerical value of G, so that the force is Newton's between solar masses at 1 AU.
    parameters={"k": GRAVITATIONAL_CONSTANT},
    units={"k": "AU^(18/5) / (solar mass^(3/10) year^2)"},
    exponents={"r": -2.6, "m1": 1.3, "m2": 0.0},
    reference="Zheng et al. (2025), NewtonBench, arXiv:2510.07172: gravity, hard, version 1",
)
