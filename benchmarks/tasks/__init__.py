"""The benchmark tasks, one file each; a file with a ``TASK`` is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from benchmarks.task import Task


@cache
def _catalogue() -> dict[str, Task]:
    modules = (
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
        if not module.name.startswith("_")
    )
    return {module.TASK.name: module.TASK for module in modules}


def names() -> tuple[str, ...]:
    """Return the names of all tasks, in alphabetical order."""
    return tuple(sorted(_catalogue()))


def get(name: str) -> Task:
    """Return a task.

    Raises:
        ValueError: There is no such task.
    """
    if name not in _catalogue():
        raise ValueError(f"unknown task {name!r}; choose from {', '.join(names())}")
    return _catalogue()[name]
