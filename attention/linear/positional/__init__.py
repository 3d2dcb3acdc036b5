"""Mixers whose weights belong to positions, not to what stands there."""
