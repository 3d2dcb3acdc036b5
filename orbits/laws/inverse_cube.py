"""A pure inverse-cube force, F = k m1 m2 / r^3: Cotes's spirals.

It binds no orbit: the distance either grows without end or falls to zero.
"""

from orbits.laws import Law
from orbits.laws.newton import GRAVITATIONAL_CONSTANT

LAW = Law(
    name="inverse_cube",
    expression="k*m1*m2/r**3",
    potential="-k*m1*m2/(2*r**2)",
    # The numerical value of G, so that the force is Newton's at 1 AU.
    parameters={"k": GRAVITATIONAL_CONSTANT},
    units={"k": "AU^4 / (solar mass year^2)"},
    exponents={"r": -3.0, "m1": 1.0, "m2": 1.0},
    reference="Cotes (1722), Harmonia Mensurarum",
)
