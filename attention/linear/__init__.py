"""Linear-time sequence mixers: one file each; a new file is found automatically.

A mixer's file is called like the mixer and defines ``MIXER``, a subclass of
:class:`attention.linear.mixer.Mixer`. Files without ``MIXER`` are what mixers share.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Any

from attention.linear.mixer import Mixer, RecurrentState

__all__ = ["Mixer", "RecurrentState", "build", "get", "names"]


@functools.cache
def _catalogue() -> dict[str, type[Mixer]]:
    found: dict[str, type[Mixer]] = {}
    for module in pkgutil.iter_modules(__path__):
        mixer = getattr(importlib.import_module(f"{__name__}.{module.name}"), "MIXER", None)
        if mixer is None:
            continue
        if mixer.name != module.name:
            raise ValueError(f"attention/linear/{module.name}.py names its mixer {mixer.name!r}")
        found[mixer.name] = mixer
    return dict(sorted(found.items()))


def names() -> tuple[str, ...]:
    """Return the names of all mixers."""
    return tuple(_catalogue())


def get(name: str) -> type[Mixer]:
    """Return the class of the mixer called ``name``.

    Raises:
        ValueError: There is no such mixer.
    """
    if name not in names():
        raise ValueError(f"unknown mixer {name!r}; choose from {', '.join(names())}")
    return _catalogue()[name]


def build(name: str, *, n_head: int, head_dim: int, **args: Any) -> Mixer:
    """Return the module of a mixer; arguments and errors are those of its class.

    Raises:
        ValueError: There is no such mixer.
    """
    return get(name)(n_head, head_dim, **args)
