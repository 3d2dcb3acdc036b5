"""Settings as command-line flags: one per field, its help from the class's docstring."""

from __future__ import annotations

import argparse
import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.task import Settings

UNSET: Any = object()
NOT_FLAGS = ("preset", "about", "jobs")


def add(parser: argparse.ArgumentParser, presets: Mapping[str, Settings]) -> None:
    """Add ``--preset`` and a flag for every field that a command line can give."""
    settings = type(next(iter(presets.values())))
    parser.add_argument("--preset", default="small", choices=presets, help="a size (small)")
    about = _about(settings)
    for name, convert in _converters(settings).items():
        flag = f"--{name.replace('_', '-')}"
        if convert is bool:
            action = argparse.BooleanOptionalAction
            parser.add_argument(flag, action=action, default=UNSET, help=about[name])
        else:
            parser.add_argument(
                flag, type=convert, default=UNSET, help=about[name], metavar=name.upper()
            )


def apply(options: argparse.Namespace, presets: Mapping[str, Settings]) -> Settings:
    """Return the chosen preset with what the command line changes.

    Raises:
        ValueError: The settings refuse a value.
    """
    preset = presets[options.preset]
    names = _converters(type(preset))
    changes = {n: getattr(options, n) for n in names if getattr(options, n) is not UNSET}
    return dataclasses.replace(preset, **changes)


def _converters(settings: type[Settings]) -> dict[str, Callable[[str], Any]]:
    """Return how to read each field; those of other types are not flags."""
    hints = typing.get_type_hints(settings)
    found = {
        field.name: _converter(hints[field.name])
        for field in dataclasses.fields(settings)
        if field.name not in (*NOT_FLAGS, *settings.not_flags)
    }
    return {name: convert for name, convert in found.items() if convert is not None}


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


def _about(settings: type[Settings]) -> dict[str, str]:
    """Return the documentation of fields, from the docstrings of a class and its bases."""
    import docstring_parser

    found: dict[str, str] = {}
    for each in reversed(settings.__mro__[:-1]):
        for parameter in docstring_parser.parse(each.__doc__ or "").params:
            found[parameter.arg_name] = (parameter.description or "").replace("%", "%%")
    return found
