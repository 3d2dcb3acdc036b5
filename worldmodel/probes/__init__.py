"""Probes of the knowledge of a world model. One file per probe; a new file is found by itself.

A file that defines ``PROBE`` is a probe and is called like it; the others are shared.
"""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from orbits.runs.choices import check_choice

if TYPE_CHECKING:
    from worldmodel.probes.base import Probe


def names() -> tuple[str, ...]:
    """Return the names of all probes; none is imported."""
    return tuple(sorted(_modules()))


def check_name(name: str) -> None:
    """Refuse a name that is not a probe's, without importing any."""
    check_choice("probe", name, names(), also=", or all")


@functools.cache
def get(name: str) -> Probe:
    """Return the probe called ``name``."""
    check_name(name)
    module = _modules()[name]
    probe: Probe = importlib.import_module(module).PROBE
    if probe.name != name:
        raise ValueError(f"{module} names its probe {probe.name!r}")
    return probe


def _modules() -> dict[str, str]:
    """Return the modules of all probes by name; those of folders are found too."""
    modules = {}
    for place in map(Path, __path__):
        for file in place.rglob("*.py"):
            if re.search(r"^PROBE\b", file.read_text(encoding="utf-8"), re.MULTILINE):
                parts = file.relative_to(place).with_suffix("").parts
                modules[file.stem] = ".".join((__name__, *parts))
    return modules
