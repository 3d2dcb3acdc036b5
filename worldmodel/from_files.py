"""Settings from a dataset's index that complete a command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from orbits.runs.cli import called
from orbits.runs.deferred import deferred
from worldmodel.configurations import after_configurations, given, settings
from worldmodel.from_checkpoint import as_flags, value_of

settings_of = deferred("worldmodel.data.files:settings")
ORBITS = "OrbitData"
DECIDED = re.compile(r"--data\.(?:init_args\.)?(protocol|protocol_args|population|seed)(?:[.=]|$)")
"""Flags of the settings that files decide, see :data:`worldmodel.data.files.DECIDED`."""


def completed(arguments: Sequence[str]) -> list[str]:
    """Return a command line with the world of its ``--data.path``, if it is a dataset of orbits."""
    path = _value(arguments, "data.path", "data.init_args.path")
    kind = _value(arguments, "data.class_path", "data") or ORBITS
    if path is None or kind.rpartition(".")[2] != ORBITS:
        return list(arguments)
    known = settings_of(path)
    for word in arguments:
        if match := DECIDED.match(word):
            key = match[1]
            raise ValueError(
                f"{path} decides data.{key}, which is {known[key]!r}; leave out --data.{key}, or "
                "generate another dataset"
            )
    place = after_configurations(arguments)
    return [*arguments[:place], *as_flags("data", known), *arguments[place:]]


def refuse_shift(command: str, arguments: Sequence[str]) -> None:
    """Refuse to train or validate on a shift, which a flag, a configuration or files may name.

    Args:
        command: Command that trains or validates.
        arguments: Its command line, completed.

    Raises:
        ValueError: There is a shift.
    """
    shift = _value(arguments, "data.protocol_args.shift", "data.init_args.protocol_args.shift")
    whole = _value(arguments, "data.protocol_args", "data.init_args.protocol_args")
    try:
        content = yaml.safe_load(whole or "")
    except yaml.YAMLError:
        content = None  # refused where its form is checked
    if isinstance(content, dict) and shift is None:
        shift = content.get("shift")
    if shift is None:
        return
    name = shift.get("name") if isinstance(shift, dict) else shift
    path = _value(arguments, "data.path", "data.init_args.path")
    holder = path or "data.protocol_args"
    raise ValueError(
        f"{holder} has test systems alone, of shift {name!r}; take {called('worldmodel predict')} "
        f"or {called('worldmodel test')}, or leave the shift out of a {command}"
    )


def _value(arguments: Sequence[str], *keys: str) -> str | None:
    """Return the value of a setting: that of a flag, or of the last configuration with one."""
    flags = (value_of(arguments, key) for key in keys)
    found = next((value for value in flags if value is not None), None)
    for path in given(arguments) if found is None else ():
        if ":" not in path:  # or it is a configuration itself, or a URL
            found = next(filter(None, settings(path, keys).values()), found)
    return None if found == "null" else found
