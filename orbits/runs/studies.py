"""Studies by name: found in packages, each by its file, and in plug-ins by their entry points."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

from orbits.runs import plugins
from orbits.runs.choices import unknown
from orbits.runs.study import Study


def names(package: ModuleType) -> tuple[str, ...]:
    """Return the names of the studies of a package: its files with a YAML file beside them."""
    found = {x for place in package.__path__ for x in Path(place).glob("*.yaml")}
    return tuple(sorted({x.stem for x in found if x.with_suffix(".py").exists()}))


def get(packages: Sequence[ModuleType], name: str) -> Study:
    """Return the study called ``name``, importing its file alone.

    Raises:
        ValueError: There is no such study; the message names near ones.
    """
    for package in packages:
        if name in names(package):
            study: Study = importlib.import_module(f"{package.__name__}.{name}").STUDY
            if study.name != name:
                raise ValueError(f"{package.__name__}/{name}.py names its study {study.name!r}")
            return study
    if (point := outside().get(name)) is not None:
        return _from_outside(point)
    known = [*(each for package in packages for each in names(package)), *outside()]
    raise unknown("study", name, known)


def outside() -> dict[str, EntryPoint]:
    """Return the studies of plug-ins by name, that of their entry points; none is imported."""
    return {point.name: point for point in plugins.installed(plugins.GROUPS["STUDY"])}


def preset_files(packages: Sequence[ModuleType]) -> dict[str, Path]:
    """Return the files of presets of all studies by name, those of plug-ins included."""
    found = {
        name: Path(next(iter(package.__path__))) / f"{name}.yaml"
        for package in packages
        for name in names(package)
    }
    for name, point in outside().items():
        with contextlib.suppress(ImportError):
            spec = importlib.util.find_spec(point.module)
            if spec is not None and spec.origin is not None:
                found.setdefault(name, Path(spec.origin).with_suffix(".yaml"))
    return found


def _from_outside(point: EntryPoint) -> Study:
    found, fault = plugins.objects(point, Study)
    if fault is None and [study.name for study in found] != [point.name]:
        fault = f"{plugins.origin(point)}: STUDY must be one study called {point.name!r}"
    if fault is not None:
        raise ValueError(fault)
    study: Study = found[0]
    return study
