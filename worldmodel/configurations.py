"""Configurations that come with the package, found by name from any folder; needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from orbits.runs.choices import near

FOLDER = Path(__file__).parent / "configs"
FLAGS = ("-c", "--config")


def names() -> tuple[str, ...]:
    """Return the names of the configurations of this package."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def find(name: str) -> str:
    """Return the path of a configuration: a file, or a name such as ``pretrain``.

    A configuration that is given as text, which has a colon in it, and a URL stay as they are.
    """
    if ":" in name or Path(name).is_file():
        return name
    path = FOLDER / f"{name.removesuffix('.yaml')}.yaml"
    if path.parent == FOLDER and path.is_file():
        return str(path)
    meant = near(Path(name).stem, names())
    hint = f"; did you mean -c {meant[0]}?" if meant else ";"
    raise FileNotFoundError(
        f"{name}: no such file, nor a configuration of this package{hint} "
        f"choose from {', '.join(names())}"
    )


def found(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which every ``-c NAME`` names a file."""
    words = list(arguments)
    for place, value, flag in _configurations(words):
        words[place] = f"{flag}{find(value)}"
    return words


def given(arguments: Sequence[str]) -> list[str]:
    """Return the values of ``-c`` of a command line, in order."""
    return [value for _, value, _ in _configurations(arguments)]


def after_configurations(arguments: Sequence[str]) -> int:
    """Return the place behind the last ``-c`` of a command line; flags there override them all."""
    return max((place + 1 for place, _, _ in _configurations(arguments)), default=0)


def _configurations(words: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the place and value of each ``-c``, and what stands before the value there."""
    for place, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in FLAGS and equals:
            yield place, value, f"{flag}="
        elif word in FLAGS and place + 1 < len(words):
            yield place + 1, words[place + 1], ""


def settings(path: str, keys: Sequence[str]) -> dict[str, str | None]:
    """Return those settings of a configuration that are text, by their keys."""
    try:
        content: Any = yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError):
        return {}  # whose message names more than this one could
    values: dict[str, str | None] = {}
    for key in keys:
        value = content
        for part in key.split("."):
            if part == "class_path" and isinstance(value, str):
                break  # the class alone stands in its place
            if isinstance(value, dict) and part not in value:
                value = value.get("init_args")
            value = value.get(part) if isinstance(value, dict) else None
        values[key] = value if isinstance(value, str) else None
    return values
