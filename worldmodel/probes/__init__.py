"""Probes: what a world model knows. One file per probe; a new file here is found automatically.

A file defines ``PROBE`` and is called like it. Files that begin with an underscore are shared.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from worldmodel.probing import Settings, Store, Subject

Line = dict[str, Any]


class Probe(Protocol):
    """One question to a checkpoint.

    Attributes:
        name: The name on the command line and in result lines; that of its file.
        about: One line on what it asks.
        captions: What each figure shows, with its controls and units.
        uses: The settings that its answers depend on.
        trains: Whether it trains anything, which a GPU does where there is one.
    """

    name: str
    about: str
    uses: Sequence[str]
    trains: bool
    captions: Mapping[str, str]

    def refusal(self, subject: Subject, settings: Settings) -> str | None:
        """Return why a checkpoint cannot be asked, and the fix; None if it can."""

    def measure(self, subject: Subject, settings: Settings, store: Store) -> Sequence[Line]:
        """Return result lines: the checkpoint's, its controls' and its oracles'.

        A line has ``name`` (who answered: the model's label, or a control's name), ``arm`` (the
        checkpoint's, ``untrained``, ``scratch``, ``untrained + ridge``, ``oracle``, ``ceiling`` or
        ``control``), ``setting`` (plain data that tells its lines apart) and ``metrics``:
        numbers, or [value, low, high] with a 95% interval over held-out sequences unless the
        setting says over what. Optional are ``curves`` (lists for the figures) and ``files``
        (paths from ``store.file``, by role).
        """

    def draw(self, lines: Sequence[Line], out: Path) -> Mapping[str, Path]:
        """Draw figures from the lines of a run, and from the files they name; path by name."""


def names() -> tuple[str, ...]:
    """Return the names of all probes."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


@functools.cache
def get(name: str) -> Probe:
    """Return the probe called ``name``.

    Raises:
        ValueError: There is no such probe; the message names near ones and lists the choices.
    """
    if name not in names():
        near = difflib.get_close_matches(str(name).lower(), names())
        hint = f"; did you mean {', '.join(near)}?" if near else ";"
        raise ValueError(f"unknown probe {name!r}{hint} choose from all, {', '.join(names())}")
    probe: Probe = importlib.import_module(f"{__name__}.{name}").PROBE
    if probe.name != name:
        raise ValueError(f"worldmodel/probes/{name}.py names its probe {probe.name!r}")
    return probe
