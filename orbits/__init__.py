"""Orbit simulator, observation protocols and datasets. No torch."""
