"""Attention variants: one specification each, one reference, several backends; linear mixers."""

from attention.api import attend, explain, stages, weights
from attention.catalogue import get, names
from attention.registry import all_names, arguments, build, label
from attention.spec import AttnSpec

__all__ = [
    "AttnSpec",
    "all_names",
    "arguments",
    "attend",
    "build",
    "explain",
    "get",
    "label",
    "names",
    "stages",
    "weights",
]
