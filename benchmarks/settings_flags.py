"""Settings as command-line flags: one per field, its help from the class's docstring.

A field that is itself a group of settings has a flag for each of its own: ``--training.devices``.
"""

from __future__ import annotations

import argparse
import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any

from benchmarks.task import Settings

UNSET: Any = object()
NOT_FLAGS = ("preset", "about", "jobs")


def add(parser: argparse.ArgumentParser, presets: Mapping[str, Settings]) -> None:
    """Add ``--preset`` and a flag for every field that a command line can give."""
    settings = type(next(iter(presets.values())))
    parser.add_argument("--preset", default="small", choices=presets, help="a size (small)")
    _add(parser, settings, "")


def apply(options: argparse.Namespace, presets: Mapping[str, Settings]) -> Settings:
    """Return the chosen preset with what the command line changes.

    Raises:
        ValueError: The settings refuse a value, or have no use for it.
    """
    preset = presets[options.preset]
    settings = _changed(preset, vars(options), "")
    settings.check_given(preset)
    return settings


def _add(parser: argparse.ArgumentParser, group: type, prefix: str) -> None:
    about = _about(group)
    for name, convert in _converters(group).items():
        given: dict[str, Any] = {
            "dest": prefix + name, "default": UNSET, "help": about.get(name, "")
        }  # fmt: skip
        flag = f"--{prefix}{name}".replace("_", "-")
        if convert is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **given)
        else:
            parser.add_argument(flag, type=convert, metavar=name.upper(), **given)
    for name, inner in _groups(group).items():
        _add(parser, inner, f"{prefix}{name}.")


def _changed(group: Any, given: Mapping[str, Any], prefix: str) -> Any:
    names, kind = _converters(type(group)), type(group)
    changes = {n: given[prefix + n] for n in names if given[prefix + n] is not UNSET}
    for name in _groups(kind):
        inner = getattr(group, name)
        changed = _changed(inner, given, f"{prefix}{name}.")
        if changed != inner:
            changes[name] = changed
    return dataclasses.replace(group, **changes)


def _converters(group: type) -> dict[str, Callable[[str], Any]]:
    """Return how to read each field; those of other types are not flags."""
    found = {name: _converter(hint) for name, hint in _fields(group).items()}
    return {name: convert for name, convert in found.items() if convert is not None}


def _groups(group: type) -> dict[str, type]:
    """Return the fields that are groups of settings."""
    fields = _fields(group).items()
    return {n: hint for n, hint in fields if isinstance(hint, type) and is_dataclass(hint)}


def _fields(group: type) -> dict[str, Any]:
    hints = typing.get_type_hints(group)
    left_out = (*NOT_FLAGS, *getattr(group, "not_flags", ()))
    return {
        field.name: hints[field.name]
        for field in dataclasses.fields(group)
        if field.name not in left_out
    }


def _converter(hint: Any) -> Callable[[str], Any] | None:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (hint,) = (x for x in arguments if x is not type(None))
        return _or_none(_converter(hint))
    if origin is tuple:
        return _several(arguments[0])
    return hint if hint in (bool, int, float, str) else None


def _or_none(item: Callable[[str], Any] | None) -> Callable[[str], Any] | None:
    if item is None:
        return None

    def read(text: str) -> Any:
        return None if text == "none" else item(text)

    read.__name__ = f"none or {item.__name__}"
    return read


def _several(item: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    def read(text: str) -> tuple[Any, ...]:
        return tuple(item(x.strip()) for x in text.split(",") if x.strip())

    read.__name__ = f"list of {item.__name__}"  # argparse puts it into its message
    return read


def _about(group: type) -> dict[str, str]:
    """Return the documentation of fields, from the docstrings of a class and its bases."""
    import docstring_parser

    found: dict[str, str] = {}
    for each in reversed(group.__mro__[:-1]):
        for parameter in docstring_parser.parse(each.__doc__ or "").params:
            found[parameter.arg_name] = (parameter.description or "").replace("%", "%%")
    return found
