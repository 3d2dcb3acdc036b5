"""Functions that are imported when they are first called.

A study is declared in a module without heavy imports, so that ``--help`` and reports do not wait
for torch; the functions that compute are named by their import paths.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import MethodType
from typing import Any


def load(path: str) -> Any:
    """Return the object of an import path, ``module:name``."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def deferred(path: str) -> Any:
    """Return a function that is imported when it is first called; in a class, it is a method.

    >>> square_root = deferred("math:sqrt")
    >>> square_root(4)
    2.0

    Args:
        path: Its import path, ``module:name``.
    """
    return _Deferred(path)


@dataclass(frozen=True)
class _Deferred:
    """A function by its import path; pickled without being imported."""

    path: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return load(self.path)(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)
