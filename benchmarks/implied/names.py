"""Two sizes that cells and reports share; they need no torch."""

FITTED = 150
"""Sequences at most to which orbits of another law are fitted, which takes long."""
MIDDLE = 1.0
"""AU. An orbit is near if its median distance in the prompt is below: the middle of the semi-major
axes of ``identifiable``."""
