"""An attraction by the squares of the masses that grows with the distance, F = k (m1^2 + m2^2) r^2.

As under ``sum_squared_over_r1_5``, a light body is flung about.
"""

from orbits.laws import Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

LAW = Law(
    name="squares_times_r2",
    expression="k*(m1**2 + m2**2)*r**2",
    potential="k*(m1**2 + m2**2)*r**3/3",
    # Half the numerical value of G: Newton's force between solar masses at 1 AU.
    parameters={"k": GRAVITATIONAL_CONSTANT / 2},
    units={"k": "1 / (AU solar mass year^2)"},
    reference="Zheng et al. (2025), NewtonBench, arXiv:2510.07172: gravity, hard, version 2",
)
