"""Two sizes that cells and reports share; they need no torch."""

FITTED = 150
"""Most sequences to which orbits of another law are fitted, which takes long."""
MIDDLE = 1.0
"""Largest median distance in the prompt, in AU, of an orbit that counts as near: the middle of the
semi-major axes of ``identifiable``."""
