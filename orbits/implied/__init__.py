"""The law that a path obeys: exponents and constants of forces, from places alone.

Nothing here is told a law. :mod:`~orbits.implied.pulls` turns places into pulls that equal
integrals of an acceleration, :mod:`~orbits.implied.within` and :mod:`~orbits.implied.overall` fit
power laws to them, and :mod:`~orbits.implied.one_step` asks predicted next places.

A law that a path obeys is not yet a law that its maker holds: a table of true orbits, of which the
nearest is pasted, obeys it to three digits.
"""
