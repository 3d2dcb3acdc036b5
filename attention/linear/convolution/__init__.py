"""Mixers that convolve with filters as long as a sequence."""
