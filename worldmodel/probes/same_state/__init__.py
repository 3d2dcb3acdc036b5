"""Probes of a law and of a mass inside a model: exchanges between systems in the same state."""
