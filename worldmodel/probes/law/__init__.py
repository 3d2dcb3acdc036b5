"""Probe of a law change inside a model: residuals exchanged between worlds."""
