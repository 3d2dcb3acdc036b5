"""An attraction by the planet's mass alone that falls off fast, F = k m1 / r^2.6.

As under ``m1_over_r2``, motion shows m1 / m2 and no mass.
"""

from orbits.laws import Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

LAW = Law(
    name="m1_over_r2_6",
    expression="k*m1/r**(13/5)",
    potential="-5*k*m1/(8*r**(8/5))",
    # The numerical value of G, so that the force is Newton's between solar masses at 1 AU.
    parameters={"k": GRAVITATIONAL_CONSTANT},
    units={"k": "AU^(18/5) / year^2"},
    exponents={"r": -2.6, "m1": 1.0, "m2": 0.0},
    reference="Zheng et al. (2025), NewtonBench, arXiv:2510.07172: gravity, medium, version 1",
)
