"""Names of what gives residuals in an exchange, and where; they need no torch."""

CHANGED, OTHER, RANDOM = "changed system", "another system", "random direction"
OTHER_LAW, SAME_LAW = "other law", "same law, other masses"
PARTNERS = (OTHER_LAW, SAME_LAW)
"""Donors in the same state: of another law, and of the own law with masses that pull as hard."""
CONTROLS = (OTHER, RANDOM)
"""Donors beside the partners: another system of the own law, and a random direction as long as
the step to the other law's residual."""
NO_DONOR = "nothing"
LAST_STEP, EVERY = "last step", "every row"
WHOLE = "-"
"""Stage and rows where the partner itself is shown, and where nothing is exchanged."""
