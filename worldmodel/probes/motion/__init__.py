"""Probes of predicted motion: next points, rollouts, and what changes with a mass."""
