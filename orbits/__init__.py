"""Orbits: the simulator, its observation protocols and the datasets made from them. No torch."""
