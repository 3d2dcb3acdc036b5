"""Names of the donors of residuals in an exchange, and of their places; they need no torch."""

CHANGED, OTHER, RANDOM = "changed system", "another system", "random direction"
OTHER_LAW, SAME_LAW = "other law", "same law, other masses"
PARTNERS = (OTHER_LAW, SAME_LAW)
"""Donors in the same state: of another law, and of the own law with masses that pull as hard."""
ANOTHER_MASS = "another mass"
"""The donor in the same state of which one mass is another."""
CONTROLS = (OTHER, RANDOM)
"""Donors beside the partners: another system of the own law, and a random direction as long as
the step to the first partner's residual."""
NO_DONOR = "nothing"
LAST_STEP, EVERY, FIRST = "last step", "every row", "time-step row"
WHOLE = "-"
"""Stage and rows of results without an exchange, such as a model that is shown the partner."""
