"""Attention variants: one specification each, one reference, several backends."""

from attention.api import attend, explain, stages, weights
from attention.catalogue import get, names
from attention.layer import build
from attention.spec import AttnSpec

__all__ = ["AttnSpec", "attend", "build", "explain", "get", "names", "stages", "weights"]
