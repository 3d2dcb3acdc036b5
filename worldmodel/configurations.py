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
    for place, value, flag in placed(words):
        words[place] = f"{flag}{find(value)}"
    return words


def given(arguments: Sequence[str]) -> list[str]:
    """Return the values of ``-c`` of a command line, in order."""
    return [value for _, value, _ in placed(arguments)]


def words(path: str) -> list[str]:
    """Return the settings of a configuration as the flags that say the same, classes first.

    A key that is null, which leaves it unset, has no value.

    Raises:
        ValueError: The file is no YAML, or holds no settings by name.
    """
    try:
        content: Any = yaml.safe_load(Path(path).read_text("utf-8"))
    except (UnicodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: holds no settings of the form key: value")
    found = []
    for group, value in content.items():
        inside = value if isinstance(value, dict) else {}
        own = inside.get("init_args")
        settings = {**inside, **(own if isinstance(own, dict) else {})}
        settings = {key: each for key, each in settings.items() if key != "init_args"}
        named = sorted(settings.items(), key=lambda item: item[0] != "class_path")
        flags = [(f"--{group}.{key}", each) for key, each in named]
        flags += [] if isinstance(value, dict) else [(f"--{group}", value)]
        found += [flag if each is None else f"{flag}={_text(each)}" for flag, each in flags]
    return found


def _text(value: Any) -> str:
    """Return a value as one would type it."""
    if isinstance(value, str):
        return value
    written = yaml.safe_dump(value, default_flow_style=True, width=float("inf"))
    return written.removesuffix("\n...\n").strip()


def after_configurations(arguments: Sequence[str]) -> int:
    """Return the place behind the last ``-c`` of a command line; flags there override them all."""
    return max((place + 1 for place, _, _ in placed(arguments)), default=0)


def placed(words: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the place and value of each ``-c``, and the part of the word before the value."""
    for place, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in FLAGS and equals:
            yield place, value, f"{flag}="
        elif word in FLAGS and place + 1 < len(words):
            yield place + 1, words[place + 1], ""


def settings(path: str, keys: Sequence[str]) -> dict[str, str | None]:
    """Return the settings of a configuration that are text, by their keys."""
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
