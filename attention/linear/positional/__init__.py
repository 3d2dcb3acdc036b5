"""Mixers whose weights belong to positions and not to tokens."""
