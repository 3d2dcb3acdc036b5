"""Refusals of models under test that are known without torch.

Of an exported model its settings and the names of its weights are read, of a model from outside its
methods. A checkpoint, which is a pickle, tells nothing before torch reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

from orbits import protocols
from orbits.protocols import Protocol
from worldmodel.models.exported import check_export, class_of
from worldmodel.outside import Source, tried
from worldmodel.probes.takes import Takes

UNASKED = {
    "TextModel": "a model of text; probes evaluate models of orbits",
    "TokenModel": "a model of text; probes evaluate models of orbits",
    "MixtureModel": "trained in the worlds of several laws; ask it by benchmarks run worlds",
}
"""Classes that no probe takes, and the reason."""


def check_exported(folder: Path, named: Mapping[str, Takes], law: str | None) -> Protocol:
    """Refuse an exported model that is damaged, or that a named probe does not take.

    Args:
        folder: The exported model.
        named: What the probes take that were named, by name; none where all are asked for.
        law: Law of the world in which it is evaluated; None for its own.

    Returns:
        The world in which it is evaluated.
    """
    settings = check_export(folder)["settings"]
    kind = class_of(folder, settings)
    if kind in UNASKED:
        raise ValueError(f"{folder}: {UNASKED[kind]}")
    for name, takes in named.items():
        _refuse(name, folder, takes.why_not_class(kind))
    return _in(protocols.get(settings["protocol"], settings.get("protocol_args")), law)


def check_outside(source: Source, named: Mapping[str, Takes], law: str | None) -> Protocol:
    """Refuse a model from outside that fails or that a named probe does not take; as above."""
    model = tried(source)
    for name, takes in named.items():
        _refuse(name, source.path, takes.why_not_outside(model))
    return _in(model.trained_on, law)


def refuse_unlike(worlds: Iterable[tuple[Path, Protocol]]) -> None:
    """Refuse models that are evaluated in different worlds."""
    told = [(path, dataclasses.replace(world, label_leak=0)) for path, world in worlds]
    for path, other in told[1:]:
        first, one = told[0]
        if one != other:
            alike = one == dataclasses.replace(other, law=one.law)
            raise ValueError(
                f"{first} and {path} are of different worlds, which never share a table; probe "
                f"them apart{f', or both in one: --law {one.law}' * alike}"
            )


def _in(world: Protocol, law: str | None) -> Protocol:
    return dataclasses.replace(world, law=law or world.law)


def _refuse(probe: str, path: Path, reason: str | None) -> None:
    if reason is not None:
        raise ValueError(f"{probe} does not take {path}: {reason}")
