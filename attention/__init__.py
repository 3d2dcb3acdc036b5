"""Attention variants: one specification each, one reference, several backends."""

from attention.api import attend, explain, weights
from attention.layer import build
from attention.spec import AttnSpec, get, names

__all__ = ["AttnSpec", "attend", "build", "explain", "get", "names", "weights"]
