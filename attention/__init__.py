"""Attention variants: one specification each, one reference, several backends; linear mixers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attention.api import arguments, attend, build, explain, get, label, names, stages, weights
    from attention.spec import AttnSpec

__all__ = [
    "AttnSpec",
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


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch, which the face loads, takes seconds."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # A plug-in takes the specification while the catalogue, which the face needs, is imported.
    module = "attention.spec" if name == "AttnSpec" else "attention.api"
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
