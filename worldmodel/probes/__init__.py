"""Probes of the knowledge of a world model. One file per probe; a new file is found by itself.

A file that defines ``PROBE`` is a probe and is called like it; the others are shared.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from orbits.runs.choices import check_choice
from worldmodel.probes.takes import Takes

if TYPE_CHECKING:
    from worldmodel.probes.base import Probe


def names() -> tuple[str, ...]:
    """Return the names of all probes; none is imported."""
    return tuple(sorted(_files()))


def takes(name: str) -> Takes:
    """Return what a probe takes, as its file says it; none is imported."""
    found: dict[str, ast.expr] = {}
    if (path := _files().get(name)) is None:  # told by no file
        return Takes()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                found[each.targets[0].id] = each.value
    told = {key: ast.literal_eval(found[key]) for key in Takes._fields if key in found}
    return Takes(**told)


def check_name(name: str) -> None:
    """Refuse a name that is not a probe's, without importing any."""
    check_choice("probe", name, names(), also=", or all")


@functools.cache
def get(name: str) -> Probe:
    """Return the probe called ``name``."""
    check_name(name)
    file = _files()[name]
    place = next(place for place in map(Path, __path__) if file.is_relative_to(place))
    module = ".".join((__name__, *file.relative_to(place).with_suffix("").parts))
    probe: Probe = importlib.import_module(module).PROBE
    if probe.name != name:
        raise ValueError(f"{module} names its probe {probe.name!r}")
    return probe


def _files() -> dict[str, Path]:
    """Return the files of all probes by name; those of folders are found too."""
    return {
        file.stem: file
        for place in map(Path, __path__)
        for file in place.rglob("*.py")
        if re.search(r"^PROBE\b", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
