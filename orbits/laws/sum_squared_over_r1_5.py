"""An attraction by the square of the sum of the masses, F = k (m1 + m2)^2 / r^1.5.

A body of no mass is pulled as hard as any other, so that a light one is flung about: its
acceleration is that force over its mass.
"""

from orbits.laws import Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

LAW = Law(
    name="sum_squared_over_r1_5",
    expression="k*(m1 + m2)**2/r**(3/2)",
    potential="-2*k*(m1 + m2)**2/sqrt(r)",
    # A quarter of the numerical value of G: Newton's force between solar masses at 1 AU.
    parameters={"k": GRAVITATIONAL_CONSTANT / 4},
    units={"k": "AU^(5/2) / (solar mass year^2)"},
    reference="Zheng et al. (2025), NewtonBench, arXiv:2510.07172: gravity, hard, version 0",
)
