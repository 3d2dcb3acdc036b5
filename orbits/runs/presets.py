"""Presets: settings under a name, in the YAML file beside a study."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orbits.runs.choices import check_choice


@dataclass(frozen=True)
class Preset:
    """Settings under a name.

    Attributes:
        name: The name on the command line.
        about: Purpose and cost.
        values: Settings that differ from the defaults, as plain data.
        workers: Cells at once on one machine, unless asked for; None leaves it to the study.
    """

    name: str
    about: str
    values: Mapping[str, Any]
    workers: int | None = None


def read_presets(path: Path) -> tuple[str, dict[str, Preset]]:
    """Return the sentence and the presets of a study's YAML.

    ``extends`` names presets to start from, one or a list: earlier ones of the file, and
    ``FILE/NAME``, those of another file beside it.
    """
    presets = {}
    for name, values in _values(path).items():
        about, workers = values.pop("about"), values.pop("workers", None)
        presets[name] = Preset(name, about, values, workers)
    return _load(path)["about"], presets


def of(study: object) -> dict[str, Preset]:
    """Return the presets of a study from the YAML beside its file."""
    return read_presets(Path(inspect.getfile(type(study))).with_suffix(".yaml"))[1]


def get(study: object, name: str) -> Preset:
    """Return a preset of a study.

    Raises:
        ValueError: There is no such preset.
    """
    known = of(study)
    check_choice("preset", name, known)
    return known[name]


def _load(path: Path) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times faster
    return yaml.load(path.read_text(encoding="utf-8"), loader)


def _values(path: Path) -> dict[str, dict[str, Any]]:
    """Return the values of each preset of a file, with those that it extends."""
    presets: dict[str, dict[str, Any]] = {}
    for name, own in _load(path)["presets"].items():
        own = dict(own or {})
        bases = own.pop("extends", [])
        values: dict[str, Any] = {}
        for base in [bases] if isinstance(bases, str) else bases:
            file, _, key = base.rpartition("/")
            known = _values(path.with_name(f"{file}.yaml")) if file else presets
            values = _merged(values, known[key])
        presets[name] = _merged(values, own)
    return presets


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in changes.items():
        inner = merged.get(name)
        if isinstance(value, dict) and isinstance(inner, dict):
            value = _merged(inner, value)
        merged[name] = value
    return merged
