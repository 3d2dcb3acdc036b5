"""Probes of predicted motion: next points, rollouts, and effects of a changed mass."""
